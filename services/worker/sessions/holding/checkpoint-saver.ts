import type { CheckpointRef, SessionClaim } from "../../../../schemas/index.ts";
import { announceFault } from "../../../../shared/runtime/index.ts";
import type { HostSession } from "../../hosts/index.ts";
import type { SessionServices } from "../session-services.ts";
import type { MayReport } from "./session-reporter.ts";

/** The last checkpoint and the one before: the instance may not have recorded the last one yet. */
const kept = 2;

/**
 * Checkpoints of one attachment. A checkpoint that fails is announced and changes nothing: the session goes
 * on. The watcher removes the checkpoints of a dead holder when the instance is over; the store cannot be
 * searched cheaply.
 */
export class CheckpointSaver {
  readonly #services: SessionServices;
  readonly #claim: SessionClaim;
  readonly #epoch: number;
  readonly #mayReport: MayReport;
  #refs: CheckpointRef[];
  /**
   * Number of calls at the last try, and whether it succeeded: an older checkpoint is not the present state.
   */
  #savedAfter = 0;
  #failed = false;

  constructor(services: SessionServices, claim: SessionClaim, epoch: number, mayReport: MayReport) {
    this.#services = services;
    this.#claim = claim;
    this.#epoch = epoch;
    this.#mayReport = mayReport;
    this.#refs = claim.restore ? [claim.restore] : [];
  }

  /** Calls since the last try to save the state. */
  since(calls: number): number {
    return calls - this.#savedAfter;
  }

  /** Call only while no code runs on the state. */
  async save(state: HostSession, calls: number): Promise<"saved" | "failed"> {
    const { checkpoints, reporter } = this.#services;
    const { sessionId } = this.#claim;
    if (this.#refs.length > 0 && this.since(calls) === 0 && !this.#failed) return "saved";
    // Counted even if saving fails: the next try comes after the same number of calls again, not after each
    // call.
    this.#savedAfter = calls;
    this.#failed = true;
    try {
      const bytes = await state.checkpoint();
      const total = calls + (this.#claim.restore?.calls ?? 0);
      const ref = await checkpoints.save(sessionId, this.#epoch, total, bytes);
      const reported = await reporter.session(
        this.#claim,
        { kind: "checkpointed", checkpoint: ref },
        this.#mayReport,
      );
      if (!reported) {
        await checkpoints.remove(ref);
        return "failed";
      }
      this.#refs.push(ref);
      this.#failed = false;
      await this.#removeAllBut(kept);
      return "saved";
    } catch (error) {
      this.#complain(error);
      return "failed";
    }
  }

  /** Removes the checkpoints of a session that is over. */
  async forget(): Promise<void> {
    try {
      await this.#removeAllBut(0);
    } catch (error) {
      this.#complain(error);
    }
  }

  async #removeAllBut(count: number): Promise<void> {
    const { checkpoints } = this.#services;
    while (this.#refs.length > count) {
      const [oldest] = this.#refs.splice(0, 1);
      if (oldest) await checkpoints.remove(oldest);
    }
  }

  #complain(error: unknown): void {
    announceFault(this.#services.deps.runtime, `checkpoint of session ${this.#claim.sessionId}`, error);
  }
}
