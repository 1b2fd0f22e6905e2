/**
 * Waits until owners confirm that they have recorded results. An owner confirms many results in one message,
 * a little later. The worker does not wait for it with anything but its memory of unconfirmed results.
 */
import { LaneRecordings } from "../../../schemas/index.ts";
import { decode, type Stoppable } from "../../../shared/bus/index.ts";
import { once, type Service, type Timer } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";

interface UnrecordedResult {
  readonly deadline: number;
  resolve(recorded: boolean): void;
}

/**
 * Long enough for a turn that waits for its append; a result not confirmed by then goes through the inbox.
 */
const recordedMs = 2_000;
const sweepMs = 500;

export class Recordings implements Service {
  readonly #deps: Pick<WorkerDeps, "bus" | "names" | "runtime" | "identity">;
  readonly #waiting = new Map<string, UnrecordedResult>();
  #subscription: Stoppable | undefined;
  #timer: Timer | undefined;

  constructor(deps: Pick<WorkerDeps, "bus" | "names" | "runtime" | "identity">) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    const { bus, names, identity } = this.#deps;
    const subject = names.laneOfRecordings(identity.workerId);
    this.#subscription = await bus.subscribe(subject, {}, ({ body }) => {
      const told = decode(LaneRecordings, body);
      if (told.kind === "ok") for (const key of told.value.keys) this.#settle(key, true);
    });
  }

  stop = once(async () => {
    this.#timer?.cancel();
    await this.#subscription?.stop();
    for (const key of [...this.#waiting.keys()]) this.#settle(key, false);
  });

  /** Resolves to false if the owner did not confirm in time. */
  wait(key: string): Promise<boolean> {
    const { clock } = this.#deps.runtime;
    this.#settle(key, false);
    return new Promise((resolve) => {
      this.#waiting.set(key, { deadline: clock.monotonic() + recordedMs, resolve });
      this.#timer ??= clock.after(sweepMs, () => this.#sweep());
    });
  }

  #settle(key: string, recorded: boolean): void {
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    waiting?.resolve(recorded);
  }

  #sweep(): void {
    const { clock } = this.#deps.runtime;
    const now = clock.monotonic();
    // The map is in the order of the deadlines.
    for (const [key, { deadline }] of this.#waiting) {
      if (deadline > now) break;
      this.#settle(key, false);
    }
    this.#timer = this.#waiting.size > 0 ? clock.after(sweepMs, () => this.#sweep()) : undefined;
  }
}
