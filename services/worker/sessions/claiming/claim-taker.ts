/** Takes one claim: first room, then seats if there is a quota, then the lease, then the attachment. */
import type { Failure, SessionClaim, SessionReport } from "../../../../schemas/index.ts";
import { bucketStream, bucketSubject, leaseKeys } from "../../../../shared/bus/index.ts";
import { type Fault, isFault } from "../../../../shared/errors/index.ts";
import { type Lease, requireTtl } from "../../../../shared/leases/index.ts";
import { HeldSession, type HeldSessionInit } from "../holding/held-session.ts";
import { leasedSession } from "../holding/leased-session.ts";
import { poolOf } from "../pools/pool-of.ts";
import type { Quotas, Seats } from "../quotas/quotas.ts";
import { leaseTtlOf } from "../session-options.ts";
import type { SessionServices } from "../session-services.ts";
import type { Capacity } from "./capacity.ts";
import type { ClaimReply } from "./claim-reply.ts";

/**
 * `unfit`: no worker can hold the session as it is, and its instance was informed. `quota`: no worker can
 * hold it until another session ends.
 */
export type Take = "taken" | "raced" | "full" | "quota" | "unfit";

export class ClaimTaker {
  readonly #services: SessionServices;
  readonly #capacity: Capacity;
  readonly #quotas: Quotas;
  readonly #onAttached: (attachment: HeldSession) => void;
  readonly #callbacks: Pick<HeldSessionInit, "onModel" | "onEnded">;
  /**
   * Claims being taken now: a forwarded claim and a delivery of the same claim must not race each other here.
   */
  readonly #taking = new Map<string, Promise<Take>>();

  constructor(
    services: SessionServices,
    { capacity, quotas }: { capacity: Capacity; quotas: Quotas },
    onAttached: (attachment: HeldSession) => void,
    callbacks: Pick<HeldSessionInit, "onModel" | "onEnded">,
  ) {
    this.#services = services;
    this.#capacity = capacity;
    this.#quotas = quotas;
    this.#onAttached = onAttached;
    this.#callbacks = callbacks;
  }

  /** `reply`: where the report of a state that is ready at once may go. */
  take(claim: SessionClaim, reply?: ClaimReply): Promise<Take> {
    const key = leaseKeys.session(claim.sessionId, claim.attachment);
    const running = this.#taking.get(key);
    if (running) return running;
    const taking = this.#take(key, claim, reply).finally(() => this.#taking.delete(key));
    this.#taking.set(key, taking);
    return taking;
  }

  /** Resolves to true if a worker has or had this attachment. */
  async isSpent(claim: SessionClaim): Promise<boolean> {
    const { bus, names } = this.#services.deps;
    const bucket = names.bucket("leases");
    const key = leaseKeys.session(claim.sessionId, claim.attachment);
    return (await bus.last(bucketStream(bucket), bucketSubject(bucket, key), { leader: true })) !== undefined;
  }

  async #take(key: string, claim: SessionClaim, reply: ClaimReply | undefined): Promise<Take> {
    const { deps } = this.#services;
    const { type } = claim;
    const capacity = this.#capacity.take(type, claim.requires, poolOf(claim));
    if (!capacity) return "full";
    const notTaken = (why: "quota" | "raced") => {
      capacity.free();
      return why;
    };
    try {
      const definition = deps.app.sessions.get(type);
      const ttlMs = requireTtl(leaseTtlOf(claim, definition, deps.config));
      // Delivered again: the seat may be that of a session held here, which is not to be taken a second time.
      if (this.#quotas.isSeatedHere(claim) && (await this.isSpent(claim))) return notTaken("raced");
      const seated = await this.#quotas.take(claim, ttlMs);
      if (seated.kind === "reached") return notTaken("quota");
      const { seats } = seated;
      const lease = await this.#lease(key, claim, ttlMs, seats);
      if (!lease) return notTaken("raced");
      deps.faultPoints?.reach("claim.after_lease", { id: claim.sessionId, type });
      const init = { claim, lease, definition, capacity, seats, reply, ...this.#callbacks };
      this.#onAttached(new HeldSession(this.#services, init));
      return "taken";
    } catch (error) {
      capacity.free();
      if (isFault(error, "config") || isFault(error, "contract")) return this.#unfit(claim, error);
      throw error;
    }
  }

  /**
   * Undefined if the lease was not won. If the bus did not answer, the seats stay taken until a worker needs
   * them (QUOTA-2).
   */
  async #lease(key: string, claim: SessionClaim, ttlMs: number, seats: Seats): Promise<Lease | undefined> {
    const { leases, identity, faultPoints } = this.#services.deps;
    const session = leasedSession(claim);
    faultPoints?.reach("claim.before_lease", { id: claim.sessionId, type: claim.type });
    const outcome = await leases.claim(key, { v: 1, holder: identity.workerId, session }, ttlMs);
    if (outcome.kind === "taken") {
      if (outcome.holder !== identity.workerId) await seats.giveBack(); // the seat stays with the lease
      return undefined;
    }
    if (await seats.stillOurs()) return outcome.lease;
    await leases.release(outcome.lease);
    const message = "claiming the lease took so long that its seat in the quota was cleared";
    await this.#reportFailed(claim, { code: "seat_lost", message, retryable: true });
    return undefined;
  }

  /**
   * Resolves to true if the refusal settled the claim. Sends no refusal if a worker has a seat for the
   * session: that seat may be the one in the way.
   */
  async refuseForQuota(claim: SessionClaim, why: string): Promise<boolean> {
    const taking = await this.#taking.get(leaseKeys.session(claim.sessionId, claim.attachment));
    if (taking === "taken" || taking === "raced" || taking === "unfit") return true;
    if (this.#quotas.isSeated(claim)) return this.isSpent(claim);
    const message = `session ${claim.sessionId} was not opened: ${why}`;
    const error = { code: "session_quota_exceeded", message, retryable: false, details: { quota: why } };
    return this.#report(claim, { kind: "refused", error });
  }

  async #unfit(claim: SessionClaim, { code, message }: Fault): Promise<"unfit"> {
    await this.#reportFailed(claim, { code, message, retryable: false });
    return "unfit";
  }

  async #reportFailed(claim: SessionClaim, error: Failure): Promise<void> {
    await this.#report(claim, { kind: "init_failed", error });
  }

  #report(claim: SessionClaim, report: SessionReport["report"]): Promise<boolean> {
    const { reporter, deps, timing } = this.#services;
    const giveUpAt = deps.runtime.clock.monotonic() + timing.reportMs;
    const mayReport = () => deps.runtime.clock.monotonic() < giveUpAt;
    return reporter.session(claim, report, mayReport);
  }
}
