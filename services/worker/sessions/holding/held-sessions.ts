import type { SessionWork } from "../../../../schemas/index.ts";
import type { Lease, LossWhy } from "../../../../shared/leases/index.ts";
import type { ReplyPath } from "../../lane/index.ts";
import type { HeldSession } from "./held-session.ts";

/**
 * The attachments on this worker. Two attachments of one session may overlap while the older one ends (S3).
 */
export class HeldSessions {
  readonly #byKey = new Map<string, HeldSession>();
  readonly #bySession = new Map<string, HeldSession[]>();

  all(): HeldSession[] {
    return [...this.#byKey.values()];
  }

  add(attachment: HeldSession): void {
    const { sessionId } = attachment.claim;
    this.#byKey.set(attachment.lease.key, attachment);
    this.#bySession.set(sessionId, [...(this.#bySession.get(sessionId) ?? []), attachment]);
  }

  remove(attachment: HeldSession): void {
    const { sessionId } = attachment.claim;
    this.#byKey.delete(attachment.lease.key);
    const left = this.#bySession.get(sessionId)?.filter((one) => one !== attachment) ?? [];
    if (left.length > 0) this.#bySession.set(sessionId, left);
    else this.#bySession.delete(sessionId);
  }

  lost(lease: Lease, why: LossWhy): void {
    this.#byKey.get(lease.key)?.lost(why);
  }

  /** Passes work to the attachment of its epoch; work without an epoch goes to the newest. */
  receive(sessionId: string, work: SessionWork, lane?: ReplyPath): boolean {
    const epoch = work.kind === "event" ? undefined : work.epoch;
    const found = this.#bySession
      .get(sessionId)
      ?.findLast((one) => epoch === undefined || one.epoch === epoch);
    return found?.receive(work, lane) ?? false;
  }
}
