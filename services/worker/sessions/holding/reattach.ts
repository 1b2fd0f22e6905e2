/**
 * S14: the bus was away for longer than the TTL, and every lease is over though no state is lost. An owner whose state
 * is clean attaches again by itself, as the next attachment, before anybody else is asked to. A dirty state is never
 * reused: there the watcher tells the loss and the session's policy decides.
 *
 * REATTACH-1 The next attachment's key is won by CAS like any other: whoever was asked meanwhile and was faster has it.
 * REATTACH-2 The register is only a hint to give up: a session that is over, or further on, is let go.
 * REATTACH-3 A holder that gives up an attachment it took by itself tells the instance, unless the session is closed: its
 *    key is spent, and an instance that asks for the same attachment would wait for nobody.
 */
import { type SessionClaim, SessionRecord } from "../../../../schemas/index.ts";
import { Bucket, decode, leaseKeys } from "../../../../shared/bus/index.ts";
import { toFailure } from "../../../../shared/errors/index.ts";
import { sleep } from "../../../../shared/runtime/index.ts";
import type { Quotas } from "../quotas/quotas.ts";
import type { SessionServices } from "../session-services.ts";
import { Attachment, type AttachmentInit } from "./attachment.ts";
import type { Ending } from "./attachment-ending.ts";
import type { Housed } from "./housed.ts";
import { shutDown } from "./shut-down-session.ts";

const retryMs = 200;
/** An outage longer than this is no reason to keep models in memory for nobody. */
const giveUpAfterMs = 600_000;
const over: ReadonlySet<SessionRecord["phase"]> = new Set(["parked", "failed", "closed"]);
const notTakenBack = "its instance did not take it back";

/** The register names another epoch, so the attachment ends. Closing says nothing and forgets checkpoints (REATTACH-3). */
const endingBy = ({ phase }: SessionRecord): Ending =>
  phase === "failed" || phase === "closed"
    ? { kind: "closed", reason: notTakenBack }
    : { kind: "given_up", reason: "expired", detail: notTakenBack };

export class Reattach {
  readonly #around: SessionServices;
  readonly #quotas: Quotas;
  readonly #callbacks: Pick<AttachmentInit, "onModel" | "onEnded">;
  readonly #onAttached: (attachment: Attachment) => void;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(
    around: SessionServices,
    quotas: Quotas,
    onAttached: (attachment: Attachment) => void,
    callbacks: Pick<AttachmentInit, "onModel" | "onEnded">,
  ) {
    this.#around = around;
    this.#quotas = quotas;
    this.#onAttached = onAttached;
    this.#callbacks = callbacks;
  }

  /** The capacity of the attachment before stays with the state. */
  begin(before: Attachment, kept: Housed): void {
    const running: Promise<void> = this.#attach(before, kept).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }

  async #attach(before: Attachment, kept: Housed): Promise<void> {
    const { clock } = this.#around.deps.runtime;
    const claim: SessionClaim = { ...before.claim, attachment: before.claim.attachment + 1 };
    const giveUpAt = clock.monotonic() + giveUpAfterMs;
    while (clock.monotonic() < giveUpAt && !this.#stopping.signal.aborted) {
      const attempt = await this.#try(before, claim, kept);
      if (attempt === "attached") return;
      if (attempt === "over") break;
      await sleep(clock, retryMs, this.#stopping.signal);
    }
    await shutDown(kept, { hooks: {}, closeMs: this.#around.timing.closeMs });
    kept.place.leave();
    before.capacity.free();
  }

  async #try(before: Attachment, claim: SessionClaim, kept: Housed): Promise<"attached" | "over" | "again"> {
    const { deps } = this.#around;
    const { instanceId, sessionId, attachment } = claim;
    if (!deps.bus.connected()) return "again";
    try {
      const record = await this.#record(sessionId);
      if (record && (over.has(record.phase) || record.attachment > before.claim.attachment)) return "over"; // REATTACH-2
      // Its seat still names the lease before: it is taken over, unless somebody needed it meanwhile.
      const seated = await this.#quotas.take(claim, before.lease.ttlMs);
      if (seated.kind === "reached") return "over";
      const { seats } = seated;
      const session = { instanceId, sessionId, attachment };
      const value = { v: 1 as const, holder: deps.identity.workerId, session };
      const outcome = await deps.leases.claim(
        leaseKeys.session(sessionId, attachment),
        value,
        before.lease.ttlMs,
      );
      if (outcome.kind === "taken") {
        await seats.giveBack();
        return "over"; // REATTACH-1
      }
      if (!(await seats.stillOurs())) {
        await deps.leases.release(outcome.lease);
        return "over"; // the reconcile tells its instance
      }
      const { definition, capacity } = before;
      const { lease } = outcome;
      const attached = new Attachment(this.#around, {
        ...{ claim, lease, definition, capacity, seats, kept },
        ...this.#callbacks,
      });
      this.#onAttached(attached);
      this.#verify(attached);
      return "attached";
    } catch (error) {
      const { code, message } = toFailure(error);
      const where = `attaching session ${sessionId} again`;
      deps.runtime.announce({ kind: "fault", where, code, message, error });
      return "again";
    }
  }

  /** An instance that wants it no more says nothing: its register does, once it has had time to take it back. */
  #verify(attachment: Attachment): void {
    const { clock } = this.#around.deps.runtime;
    clock.after(attachment.lease.ttlMs * 2, () => {
      void this.#record(attachment.claim.sessionId).then(
        (record) => {
          if (!record || record.epoch === attachment.epoch) return;
          void attachment.end(endingBy(record));
        },
        () => undefined, // nothing is known: the idle timeout is the next net
      );
    });
  }

  async #record(sessionId: string): Promise<SessionRecord | undefined> {
    const { bus, names } = this.#around.deps;
    const entry = await new Bucket(bus, names.bucket("sessions")).get(sessionId, { leader: true });
    const record = entry && decode(SessionRecord, entry.value);
    return record?.kind === "ok" ? record.value : undefined;
  }
}
