/**
 * Acts on a state between calls: saves it, takes snapshots, moves it to another host before its own host
 * ends.
 */
import type { SessionClaim } from "../../../../schemas/index.ts";
import type { AnySession } from "../../../../shared/definitions/index.ts";
import { announceFault } from "../../../../shared/runtime/index.ts";
import type { RunHooks } from "../../hosts/index.ts";
import type { Calls } from "../calls/calls.ts";
import type { SessionServices } from "../session-services.ts";
import type { CheckpointSaver } from "./checkpoint-saver.ts";
import { moveState, type StateRequest } from "./make-state.ts";
import type { PlacedState } from "./placed-state.ts";
import { shutDown } from "./shut-down-session.ts";
import { Snapshots } from "./snapshots.ts";

/** The part of an attachment that is needed here. */
export interface CaredSession {
  readonly claim: SessionClaim;
  readonly definition: AnySession | undefined;
  /** Undefined as soon as the attachment is ending. */
  ready(): { placed: PlacedState; calls: Calls } | undefined;
  moved(placed: PlacedState): void;
  giveUp(why: string): void;
  request(): Omit<StateRequest, "kept">;
  hooks(name: string): RunHooks;
}

export class StateCare {
  readonly #services: SessionServices;
  readonly #one: CaredSession;
  readonly #saver: CheckpointSaver;
  readonly #snapshots: Snapshots;

  constructor(services: SessionServices, one: CaredSession, saver: CheckpointSaver) {
    this.#services = services;
    this.#one = one;
    this.#saver = saver;
    this.#snapshots = new Snapshots(services.deps.runtime.clock, services.timing.snapshotEveryMs);
  }

  get snapshot(): unknown {
    return this.#snapshots.latest;
  }

  /** A state was made, or a run on it has ended and the next has not begun. */
  look(): void {
    const ready = this.#one.ready();
    if (ready) this.#snapshots.refresh(this.#one.definition, ready.placed.state);
  }

  /** Waits for running code first. */
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
    ready.placed.place.ran();
  }

  /**
   * The host must end. A state that can be saved moves to another host under the same right, unseen by
   * callers. Other states are given up if their instance can have them made anew; the rest stay until they
   * are closed.
   */
  async recycle(why: string): Promise<void> {
    const { definition, claim } = this.#one;
    if (definition?.checkpoint) await this.#between((placed, calls) => this.#move(placed, calls));
    else if (claim.onLost !== undefined && claim.onLost !== "fail") {
      await this.#between(async () => this.#one.giveUp(why));
    }
  }

  async #move(from: PlacedState, calls: Calls): Promise<void> {
    const { timing, deps } = this.#services;
    try {
      const placed = await moveState(this.#services, from, this.#one.request());
      if (!this.#one.ready()) {
        placed.place.leave({ suspect: true }); // the attachment ended meanwhile: the state goes with its host
        return;
      }
      calls.moveTo(placed.state);
      this.#one.moved(placed);
      const { clock } = deps.runtime;
      await shutDown(from, { hooks: this.#one.hooks("shutdown"), closeMs: timing.closeMs, clock });
      from.place.leave();
    } catch (error) {
      announceFault(deps.runtime, `moving session ${this.#one.claim.sessionId} to another host`, error);
    }
  }

  /** Runs an act on the state while no code of the session runs. */
  async #between(act: (placed: PlacedState, calls: Calls) => Promise<unknown>): Promise<void> {
    const goOn = await this.#one.ready()?.calls.hold();
    if (!goOn) return;
    try {
      const ready = this.#one.ready();
      if (ready) await act(ready.placed, ready.calls);
    } finally {
      goOn();
    }
  }
}
