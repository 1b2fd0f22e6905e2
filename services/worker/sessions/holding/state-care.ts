/** What is done with a state between calls: saved, looked at, moved to another host before its own one goes. */
import type { SessionClaim } from "../../../../schemas/index.ts";
import type { AnySession } from "../../../../shared/definitions/index.ts";
import { toFailure } from "../../../../shared/errors/index.ts";
import type { RunHooks } from "../../hosts/index.ts";
import type { Calls } from "../calls/calls.ts";
import type { SessionServices } from "../session-services.ts";
import type { CheckpointSaver } from "./checkpoint-saver.ts";
import type { Housed } from "./housed.ts";
import { moveState, type StateRequest } from "./make-state.ts";
import { shutDown } from "./shut-down-session.ts";
import { Snapshots } from "./snapshots.ts";

/** The attachment, as far as this is concerned. */
export interface CaredFor {
  readonly claim: SessionClaim;
  readonly definition: AnySession | undefined;
  /** Undefined as soon as it is ending. */
  ready(): { housed: Housed; calls: Calls } | undefined;
  moved(housed: Housed): void;
  giveUp(why: string): void;
  request(): Omit<StateRequest, "kept">;
  hooks(name: string): RunHooks;
}

export class StateCare {
  readonly #around: SessionServices;
  readonly #one: CaredFor;
  readonly #saver: CheckpointSaver;
  readonly #snapshots: Snapshots;

  constructor(around: SessionServices, one: CaredFor, saver: CheckpointSaver) {
    this.#around = around;
    this.#one = one;
    this.#saver = saver;
    this.#snapshots = new Snapshots(around.deps.runtime.clock, around.timing.snapshotEveryMs);
  }

  get snapshot(): unknown {
    return this.#snapshots.latest;
  }

  /** A state was made, or a run on it is over and the next has not begun. */
  look(): void {
    const ready = this.#one.ready();
    if (ready) this.#snapshots.take(this.#one.definition, ready.housed.state);
  }

  /** Waits for what runs. */
  async save(): Promise<"saved" | "failed"> {
    let outcome: "saved" | "failed" = "failed";
    await this.#between(async ({ state }, calls) => {
      outcome = await this.#saver.save(state, calls.done);
    });
    return outcome;
  }

  ran(): void {
    const ready = this.#one.ready();
    if (!ready) return;
    this.look();
    const { definition } = this.#one;
    const every = definition?.checkpoint ? definition.options.checkpointEvery : undefined;
    if (every !== undefined && this.#saver.since(ready.calls.done) >= every) {
      void this.#between(({ state }, calls) => this.#saver.save(state, calls.done));
    }
    ready.housed.place.ran();
  }

  /**
   * The host is to go. A state that can be saved moves to another one under the same right, and nobody notices;
   * another one is given up where its instance can have it made anew; the rest stay until they are closed.
   */
  async recycle(why: string): Promise<void> {
    const { definition, claim } = this.#one;
    if (definition?.checkpoint) await this.#between((housed, calls) => this.#move(housed, calls));
    else if (claim.onLost !== undefined && claim.onLost !== "fail") {
      await this.#between(async () => this.#one.giveUp(why));
    }
  }

  async #move(from: Housed, calls: Calls): Promise<void> {
    const { timing, deps } = this.#around;
    try {
      const housed = await moveState(this.#around, from, this.#one.request());
      if (!this.#one.ready()) {
        housed.place.leave({ suspect: true }); // ended meanwhile: it goes with its host
        return;
      }
      calls.moveTo(housed.state);
      this.#one.moved(housed);
      await shutDown(from, { hooks: this.#one.hooks("shutdown"), closeMs: timing.closeMs });
      from.place.leave();
    } catch (error) {
      const { code, message } = toFailure(error);
      const where = `moving session ${this.#one.claim.sessionId} to another host`;
      deps.runtime.announce({ kind: "fault", where, code, message, error });
    }
  }

  /** Runs something on the state while no code of the session does. */
  async #between(act: (housed: Housed, calls: Calls) => Promise<unknown>): Promise<void> {
    const goOn = await this.#one.ready()?.calls.hold();
    if (!goOn) return;
    try {
      const ready = this.#one.ready();
      if (ready) await act(ready.housed, ready.calls);
    } finally {
      goOn();
    }
  }
}
