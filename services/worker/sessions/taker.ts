/** Taking one claim: room, then the lease, then an attachment. */
import type { SessionClaim } from "../../../schemas/index.ts";
import { bucketStream, bucketSubject, leaseKeys } from "../../../shared/bus/index.ts";
import { type Fault, isFault } from "../../../shared/errors/index.ts";
import { Attachment, type AttachmentInit } from "./attachment.ts";
import type { Capacity } from "./capacity.ts";
import { poolOf } from "./pool-of.ts";
import { leaseTtlOf } from "./session-options.ts";
import type { Surroundings } from "./surroundings.ts";

/** `unfit`: it can be held by nobody as it is; its instance was told. */
export type Take = "taken" | "raced" | "full" | "unfit";

export class Taker {
  readonly #around: Surroundings;
  readonly #capacity: Capacity;
  readonly #onAttached: (attachment: Attachment) => void;
  readonly #callbacks: Pick<AttachmentInit, "onModel" | "onEnded">;
  /** Claims being taken now: a nudge and a delivery of the same one must not race each other here. */
  readonly #taking = new Map<string, Promise<Take>>();

  constructor(
    around: Surroundings,
    capacity: Capacity,
    onAttached: (attachment: Attachment) => void,
    callbacks: Pick<AttachmentInit, "onModel" | "onEnded">,
  ) {
    this.#around = around;
    this.#capacity = capacity;
    this.#onAttached = onAttached;
    this.#callbacks = callbacks;
  }

  take(claim: SessionClaim): Promise<Take> {
    const key = leaseKeys.session(claim.sessionId, claim.attachment);
    const running = this.#taking.get(key);
    if (running) return running;
    const taking = this.#take(key, claim).finally(() => this.#taking.delete(key));
    this.#taking.set(key, taking);
    return taking;
  }

  /** Somebody has, or had, this attachment. */
  async isSpent(claim: SessionClaim): Promise<boolean> {
    const { bus, names } = this.#around.deps;
    const bucket = names.bucket("leases");
    const key = leaseKeys.session(claim.sessionId, claim.attachment);
    return (await bus.last(bucketStream(bucket), bucketSubject(bucket, key), { leader: true })) !== undefined;
  }

  async #take(key: string, claim: SessionClaim): Promise<Take> {
    const { deps } = this.#around;
    const { instanceId, sessionId, attachment, type } = claim;
    const capacity = this.#capacity.take(type, claim.requires, poolOf(claim));
    if (!capacity) return "full";
    try {
      const definition = deps.app.sessions.get(type);
      const session = { instanceId, sessionId, attachment };
      const value = { v: 1 as const, holder: deps.identity.workerId, session };
      deps.faultPoints?.reach("claim.before_lease");
      const outcome = await deps.leases.claim(key, value, leaseTtlOf(claim, definition, deps.config));
      if (outcome.kind === "taken") {
        capacity.free();
        return "raced";
      }
      deps.faultPoints?.reach("claim.after_lease");
      const init = { claim, lease: outcome.lease, definition, capacity, ...this.#callbacks };
      this.#onAttached(new Attachment(this.#around, init));
      return "taken";
    } catch (error) {
      capacity.free();
      if (isFault(error, "config") || isFault(error, "contract")) return this.#unfit(claim, error);
      throw error;
    }
  }

  async #unfit(claim: SessionClaim, fault: Fault): Promise<"unfit"> {
    const { code, message } = fault;
    const error = { code, message, retryable: false };
    const { reporter, deps, timing } = this.#around;
    const giveUpAt = deps.runtime.clock.monotonic() + timing.tellMs;
    const mayTell = () => deps.runtime.clock.monotonic() < giveUpAt;
    await reporter.session(claim, { kind: "init_failed", error }, mayTell);
    return "unfit";
  }
}
