/** Which stream keeps the history of one instance: a shared one, or one of its own when it has run for long. */
import { scheduleOrchestration } from "../../../schemas/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Position } from "../../../shared/history/index.ts";
import { type Instance, type InstanceState, isEnded } from "../../../shared/replay/index.ts";
import type { OrchestratorDeps } from "../deps.ts";

/** The store may stay full for long, and each try delays the instance's turns. */
const retryAfterMs = 30_000;

export class HistoryPlace {
  readonly #deps: OrchestratorDeps;
  #position: Position | undefined;
  /** By the monotonic clock. After a move that failed, a later turn tries again. */
  #staysUntil = 0;

  constructor(deps: OrchestratorDeps, position: Position | undefined) {
    this.#deps = deps;
    this.#position = position;
  }

  /** Where the next commit is appended; the first commit of an instance decides it. */
  async of({ state }: Instance): Promise<Position> {
    this.#position ??= await this.#deps.history.place(state.instanceId, {
      started: mayHaveStream(state) && !this.#beginsShared,
    });
    return this.#position;
  }

  /** True if no other owner has appended since; asks the server. */
  async hasLastCommit(instanceId: string): Promise<boolean> {
    const { history } = this.#deps;
    return this.#position ? history.isLast(this.#position) : (await history.load(instanceId)) === undefined;
  }

  movedTo(position: Position): void {
    this.#position = position;
  }

  /** True if the instance gets a stream of its own when it has run for a while. */
  isYoung({ state, parked }: Instance): boolean {
    if (!this.#position || this.#stays || !this.#beginsShared) return false;
    return mayHaveStream(state) && !isEnded(state) && !parked && this.#deps.history.mayMove(this.#position);
  }

  async moveIfLongLived(instance: Instance, now: number): Promise<void> {
    const { instanceId, startedAt = now } = instance.state;
    if (!this.isYoung(instance) || now - startedAt < this.#deps.longLived.afterMs || !this.#position) return;
    this.#staysUntil = Number.POSITIVE_INFINITY;
    try {
      this.#position = (await this.#deps.history.moveToOwn(instanceId, this.#position)) ?? this.#position;
    } catch (error) {
      // The history is where it was, or the next append is fenced and the next copy finds it. The stream may be
      // there already, and empty.
      this.#staysUntil = this.#deps.runtime.clock.monotonic() + retryAfterMs;
      const code = isFault(error) ? error.code : "move_failed";
      const message = `${instanceId} stays in a shared stream: ${String(error)}`;
      this.#deps.runtime.announce({ kind: "fault", where: "history", code, message, error });
    }
  }

  get #stays(): boolean {
    return this.#deps.runtime.clock.monotonic() < this.#staysUntil;
  }

  /** Versions before 0.2 do not know a history that moves. */
  get #beginsShared(): boolean {
    return this.#deps.longLived.afterMs > 0 && this.#deps.generation.allows(2);
  }
}

/** Schedules are many and have short histories: none needs a stream of its own. */
const mayHaveStream = ({ status, name }: Readonly<InstanceState>): boolean =>
  status !== "absent" && status !== "pending" && name !== scheduleOrchestration;
