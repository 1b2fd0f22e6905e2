import type { CheckpointRef, SessionClaim } from "../../../schemas/index.ts";
import { toFailure } from "../../../shared/errors/index.ts";
import type { HostSession } from "../hosts/index.ts";
import type { MayTell } from "./reporter.ts";
import type { Surroundings } from "./surroundings.ts";

/** Checkpoints of one attachment. One that fails is announced and changes nothing: the session goes on. */
export class Saver {
  readonly #around: Surroundings;
  readonly #claim: SessionClaim;
  readonly #epoch: number;
  readonly #mayTell: MayTell;
  #last: CheckpointRef | undefined;
  #savedAfter = 0;

  constructor(around: Surroundings, claim: SessionClaim, epoch: number, mayTell: MayTell) {
    this.#around = around;
    this.#claim = claim;
    this.#epoch = epoch;
    this.#mayTell = mayTell;
    this.#last = claim.restore;
  }

  /** Calls since the state was last saved. */
  since(calls: number): number {
    return calls - this.#savedAfter;
  }

  /** Only on a state no code runs on. */
  async save(state: HostSession, calls: number): Promise<"saved" | "failed"> {
    const { checkpoints, reporter } = this.#around;
    const { sessionId } = this.#claim;
    // Counted even if it fails: the next try comes after as many calls again, not after each.
    this.#savedAfter = calls;
    try {
      const bytes = await state.checkpoint();
      const total = calls + (this.#claim.restore?.calls ?? 0);
      const ref = await checkpoints.save(sessionId, this.#epoch, total, bytes);
      const told = await reporter.session(
        this.#claim,
        { kind: "checkpointed", checkpoint: ref },
        this.#mayTell,
      );
      if (!told) {
        await checkpoints.remove(ref);
        return "failed";
      }
      await this.#tidy(ref);
      return "saved";
    } catch (error) {
      const { code, message } = toFailure(error);
      const where = `checkpoint of session ${sessionId}`;
      this.#around.deps.runtime.announce({ kind: "fault", where, code, message, error });
      return "failed";
    }
  }

  /** The one before stays: the instance may not have read of the new one yet. */
  async #tidy(ref: CheckpointRef): Promise<void> {
    const before = this.#last;
    this.#last = ref;
    await this.#around.checkpoints.keepOnly(
      this.#claim.sessionId,
      before ? [ref.key, before.key] : [ref.key],
    );
  }
}
