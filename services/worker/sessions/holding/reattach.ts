/**
 * S14: the bus was away for longer than the TTL, and every lease is over though no state is lost. A holder
 * whose state is clean attaches again by itself, as the next attachment, before the instance asks another
 * worker. A dirty state is never reused: there the watcher reports the loss and the session's policy decides.
 *
 * REATTACH-1 The next attachment's key is won by CAS like any other: a worker that was asked meanwhile and
 *    was faster has it.
 * REATTACH-2 The register is only a hint to give up: a session that is over, or further on, is let go.
 * REATTACH-3 A holder that gives up an attachment it took by itself informs the instance, unless the session
 *    is closed: its key is spent, and an instance that asks for the same attachment would never get an
 *    answer.
 */
import { type SessionClaim, SessionRecord } from "../../../../schemas/index.ts";
import { Bucket, decode, leaseKeys } from "../../../../shared/bus/index.ts";
import { announceFault, sleep } from "../../../../shared/runtime/index.ts";
import type { Quotas } from "../quotas/quotas.ts";
import type { SessionServices } from "../session-services.ts";
import { HeldSession, type HeldSessionInit } from "./held-session.ts";
import { leasedSession } from "./leased-session.ts";
import type { PlacedState } from "./placed-state.ts";
import type { SessionEnding } from "./session-ending.ts";
import { shutDown } from "./shut-down-session.ts";

const retryMs = 200;
/** After an outage longer than this, states (and their models) are no longer kept in memory. */
const giveUpAfterMs = 600_000;
const over: ReadonlySet<SessionRecord["phase"]> = new Set(["parked", "failed", "closed"]);
const notTakenBack = "its instance did not take it back";

/**
 * The register names another epoch, so the attachment ends. Closing sends no report and removes checkpoints
 * (REATTACH-3).
 */
const endingBy = ({ phase }: SessionRecord): SessionEnding =>
  phase === "failed" || phase === "closed"
    ? { kind: "closed", reason: notTakenBack }
    : { kind: "given_up", reason: "expired", detail: notTakenBack };

export class Reattach {
  readonly #services: SessionServices;
  readonly #quotas: Quotas;
  readonly #callbacks: Pick<HeldSessionInit, "onModel" | "onEnded">;
  readonly #onAttached: (attachment: HeldSession) => void;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(
    services: SessionServices,
    quotas: Quotas,
    onAttached: (attachment: HeldSession) => void,
    callbacks: Pick<HeldSessionInit, "onModel" | "onEnded">,
  ) {
    this.#services = services;
    this.#quotas = quotas;
    this.#onAttached = onAttached;
    this.#callbacks = callbacks;
  }

  /** The state keeps the capacity of the previous attachment. */
  begin(before: HeldSession, kept: PlacedState): void {
    const running: Promise<void> = this.#attach(before, kept).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }

  async #attach(before: HeldSession, kept: PlacedState): Promise<void> {
    const { clock } = this.#services.deps.runtime;
    const claim: SessionClaim = { ...before.claim, attachment: before.claim.attachment + 1 };
    const giveUpAt = clock.monotonic() + giveUpAfterMs;
    while (clock.monotonic() < giveUpAt && !this.#stopping.signal.aborted) {
      const attempt = await this.#try(before, claim, kept);
      if (attempt === "attached") return;
      if (attempt === "over") break;
      await sleep(clock, retryMs, this.#stopping.signal);
    }
    await shutDown(kept, { hooks: {}, closeMs: this.#services.timing.closeMs, clock });
    kept.place.leave();
    before.capacity.free();
  }

  async #try(
    before: HeldSession,
    claim: SessionClaim,
    kept: PlacedState,
  ): Promise<"attached" | "over" | "again"> {
    const { deps } = this.#services;
    const { sessionId, attachment } = claim;
    if (!deps.bus.connected()) return "again";
    try {
      const record = await this.#record(sessionId);
      if (record && (over.has(record.phase) || record.attachment > before.claim.attachment)) return "over"; // REATTACH-2
      // The seat still names the previous lease: it is taken over, unless another worker needed it meanwhile.
      const seated = await this.#quotas.take(claim, before.lease.ttlMs);
      if (seated.kind === "reached") return "over";
      const { seats } = seated;
      const session = leasedSession(claim);
      const value = { v: 1 as const, holder: deps.identity.workerId, session };
      const outcome = await deps.leases.claim(
        leaseKeys.session(sessionId, attachment),
        value,
        before.lease.ttlMs,
      );
      if (outcome.kind === "taken") {
        if (outcome.holder !== value.holder) await seats.giveBack(); // the seat stays with the lease
        return "over"; // REATTACH-1
      }
      if (!(await seats.stillOurs())) {
        await deps.leases.release(outcome.lease);
        return "over"; // the reconciliation informs the instance
      }
      const { definition, capacity, noted, blobs } = before;
      const { lease } = outcome;
      const attached = new HeldSession(this.#services, {
        ...{ claim, lease, definition, capacity, seats, kept, noted, blobs },
        ...this.#callbacks,
      });
      this.#onAttached(attached);
      this.#verify(attached);
      return "attached";
    } catch (error) {
      announceFault(deps.runtime, `attaching session ${sessionId} again`, error);
      return "again";
    }
  }

  /**
   * An instance that no longer wants the session sends nothing. Its register entry shows it, once the
   * instance has had time to take the session back.
   */
  #verify(attachment: HeldSession): void {
    const { clock } = this.#services.deps.runtime;
    clock.after(attachment.lease.ttlMs * 2, () => {
      void this.#record(attachment.claim.sessionId).then(
        (record) => {
          if (!record || record.epoch === attachment.epoch) return;
          void attachment.end(endingBy(record));
        },
        () => undefined, // the register did not answer: the idle timeout ends an unwanted session
      );
    });
  }

  async #record(sessionId: string): Promise<SessionRecord | undefined> {
    const { bus, names } = this.#services.deps;
    const entry = await new Bucket(bus, names.bucket("sessions")).get(sessionId, { leader: true });
    const record = entry && decode(SessionRecord, entry.value);
    return record?.kind === "ok" ? record.value : undefined;
  }
}
