/**
 * From the queue of claims to sessions held here (S12).
 *
 * CLAIM-1 Claims are pulled only while there is room for the type. A pulled claim is settled soon: taken,
 *    passed on, or given back with a delay that grows; nothing spins.
 * CLAIM-2 Taking is a CAS create of the attachment's lease key. A key that exists, or existed, ends the claim
 *    wherever it is delivered again.
 * CLAIM-3 A claim refused here is remembered and looked at again when the fleet changes, so that it need not
 *    wait for its next delivery.
 * CLAIM-4 While a quota is reached, one claim per type is enough to know that a session waits: the others
 *    stay in the queue.
 */
import { SessionClaim } from "../../../../schemas/index.ts";
import { buryDelivery, type Delivery, decode } from "../../../../shared/bus/index.ts";
import { isFault } from "../../../../shared/errors/index.ts";
import { announceFault, backoffMs, once, type Service } from "../../../../shared/runtime/index.ts";
import { nearEnough, place } from "../../../../shared/sessions/index.ts";
import type { Quotas } from "../quotas/quotas.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import type { Capacity } from "./capacity.ts";
import { ClaimForwarding } from "./claim-forwarding.ts";
import { ClaimPuller } from "./claim-puller.ts";
import type { ClaimReply } from "./claim-reply.ts";
import type { ClaimTaker } from "./claim-taker.ts";
import type { Fleet } from "./fleet.ts";
import { WaitingClaims } from "./waiting-claims.ts";

/**
 * A message that does not parse may be for a newer worker; after this many deliveries no worker can read it.
 */
const triesToParse = 5;

export type Verdict =
  | { kind: "taken" }
  | { kind: "raced" }
  | { kind: "stale"; why: string }
  | { kind: "forwarded"; to: string }
  /** Another worker fits much better, and it did not answer. */
  | { kind: "unanswered"; why: string }
  /** `forSeat`: as far as this worker checked, only a quota stands in the way. */
  | { kind: "refused"; why: string; forSeat?: true };

interface ClaimsInit {
  deps: SessionDeps;
  timing: SessionTiming;
  types: readonly string[];
  capacity: Capacity;
  fleet: Fleet;
  quotas: Quotas;
  taker: ClaimTaker;
}

export class Claims implements Service {
  readonly #init: ClaimsInit;
  readonly #waiting: WaitingClaims;
  readonly #pullers: ClaimPuller[];
  readonly #forwarding: ClaimForwarding;
  /**
   * Claims being decided here. In a burst other workers have as many, which the register does not show yet.
   */
  #judging = 0;
  #unlisten: () => void = () => undefined;
  #stopped = false;

  constructor(init: ClaimsInit) {
    this.#init = init;
    const { deps, timing, capacity, fleet } = init;
    const { clock } = deps.runtime;
    this.#waiting = new WaitingClaims(clock, () => deps.view?.workers(), {
      again: (claim) => void this.#again(claim).finally(() => this.#fill()),
      forgotten: () => this.#fill(),
      room: (type) => init.quotas.room(type),
    });
    this.#forwarding = new ClaimForwarding(deps, timing, init.types, fleet, (claim, reply) =>
      this.#offered(claim, reply),
    );
    const onClaim = (delivery: Delivery) => void this.#settle(delivery);
    const onTrouble = (error: unknown) => this.#complain("pull of claims", error);
    this.#pullers = init.types.map((type) => {
      const room = () => this.#room(type);
      return new ClaimPuller({ deps, timing, type, capacity, room, onClaim, onTrouble });
    });
  }

  async start(): Promise<void> {
    await this.#forwarding.start();
    await Promise.all(this.#pullers.map((puller) => puller.start()));
    this.#unlisten = this.#init.quotas.onRoom(() => {
      this.#fill();
      this.roomChanged();
    });
  }

  stop = once(async () => {
    this.#stopped = true;
    this.#unlisten();
    this.#waiting.stop();
    await Promise.all([this.#forwarding.stop(), ...this.#pullers.map((puller) => puller.stop())]);
  });

  /** Looks at the waiting claims again, because there may be room for one. */
  roomChanged(): void {
    this.#waiting.changed();
  }

  #room(type: string): number {
    const { capacity, quotas } = this.#init;
    const seats = quotas.room(type);
    if (seats === Number.POSITIVE_INFINITY) return capacity.roomLeft(type);
    // CLAIM-4: claims that already wait here for a seat come first.
    return Math.min(capacity.roomLeft(type), Math.max(1, seats) - this.#waiting.forSeats(type));
  }

  #fill(): void {
    for (const puller of this.#pullers) puller.fill();
  }

  async #settle(delivery: Delivery): Promise<void> {
    const decoded = decode(SessionClaim, delivery.body);
    if (decoded.kind === "invalid")
      return this.#unreadable(delivery, decoded.message, decoded.newer ?? false);
    const claim = decoded.value;
    try {
      const verdict = await this.#judge(claim, delivery.deliveries);
      this.#announce(claim, verdict);
      this.#act(delivery, claim, verdict);
    } catch (error) {
      // The outcome is unknown: the claim comes again, and the lease key shows what became of it (CLAIM-2).
      this.#complain(`claim of ${claim.sessionId}`, error);
      delivery.nak(this.#restMs(delivery.deliveries));
    }
  }

  #act(delivery: Delivery, claim: SessionClaim, verdict: Verdict): void {
    switch (verdict.kind) {
      case "taken":
      case "raced":
      case "stale":
      case "forwarded":
        delivery.ack();
        return;
      case "unanswered":
        delivery.nak(this.#init.timing.passedOnMs);
        return;
      case "refused": {
        const restMs = this.#restMs(delivery.deliveries);
        this.#waiting.add(claim, { restMs, forSeat: verdict.forSeat });
        delivery.nak(restMs);
        return;
      }
    }
  }

  async #judge(claim: SessionClaim, deliveries: number): Promise<Verdict> {
    this.#judging++;
    try {
      return await this.#verdict(claim, deliveries);
    } finally {
      this.#judging--;
    }
  }

  async #verdict(claim: SessionClaim, deliveries: number): Promise<Verdict> {
    const { fleet, taker, quotas } = this.#init;
    if (this.#init.deps.runtime.clock.now() >= claim.deadlineAt)
      return { kind: "stale", why: "its time is over" };
    if (deliveries > 1 && (await taker.isSpent(claim))) return { kind: "stale", why: "taken before" };
    const reached = await quotas.reached(claim);
    if (reached !== undefined) return this.#full(claim, reached);
    const except = new Set<string>();
    let unanswered: string | undefined;
    for (;;) {
      const workers = fleet.workers();
      const choice = place(workers, claim, { except });
      if (choice.kind === "none") {
        return unanswered === undefined
          ? { kind: "refused", why: choice.message }
          : { kind: "unanswered", why: `no answer from ${unanswered}` };
      }
      const self = fleet.self();
      const best = workers.find((worker) => worker.workerId === choice.workerId);
      if (
        self.workerId === choice.workerId ||
        (best && !except.has(self.workerId) && nearEnough(self, best, claim, this.#judging))
      ) {
        const take = await taker.take(claim);
        if (take === "unfit") return { kind: "stale", why: "no worker can hold this session as it is" };
        if (take === "quota") return this.#full(claim, quotas.sentence(claim.type));
        if (take !== "full") return { kind: take };
        except.add(self.workerId);
        continue;
      }
      const answer = await this.#forwarding.send(choice.workerId, claim);
      if (answer === "taken") return { kind: "forwarded", to: choice.workerId };
      if (answer === "unanswered") unanswered = choice.workerId;
      except.add(choice.workerId);
    }
  }

  /** A quota is reached: the claim waits, or its instance is informed, as the session's opener asked. */
  async #full(claim: SessionClaim, why: string): Promise<Verdict> {
    if (claim.whenFull === "fail" && (await this.#init.taker.refuseForQuota(claim, why)))
      return { kind: "stale", why };
    return { kind: "refused", why, forSeat: true };
  }

  /**
   * Answers an orchestrator, which asks for itself or for another worker: it considers this worker the best
   * for the claim, or asks whether a quota is reached.
   */
  async #offered(claim: SessionClaim, reply: ClaimReply): Promise<"taken" | "refused"> {
    const { fleet, taker, quotas, deps } = this.#init;
    if (this.#stopped || deps.runtime.clock.now() >= claim.deadlineAt) return "refused";
    // Claims that wait here came before it.
    if (reply.isToOwner && this.#waiting.hasType(claim.type)) return "refused";
    try {
      const reached = claim.whenFull === "fail" ? await quotas.reached(claim) : undefined;
      if (reached !== undefined) return this.#settled(await this.#full(claim, reached));
      if (place([fleet.self()], claim).kind === "none") return "refused";
      const take = await taker.take(claim, reply);
      if (take === "quota") return this.#settled(await this.#full(claim, quotas.sentence(claim.type)));
      if (take === "full") return "refused";
      if (take !== "unfit") this.#announce(claim, { kind: take });
      return "taken";
    } catch (error) {
      this.#complain(`claim of ${claim.sessionId}`, error);
      return "refused";
    }
  }

  #settled({ kind }: Verdict): "taken" | "refused" {
    return kind === "refused" ? "refused" : "taken";
  }

  /** CLAIM-3. The claim's message is still in the queue; the worker that gets it next finds the lease key. */
  async #again(claim: SessionClaim): Promise<void> {
    if (this.#stopped) return;
    try {
      const verdict = await this.#judge(claim, 1);
      const { restMaxMs: restMs } = this.#init.timing;
      if (verdict.kind === "refused") this.#waiting.add(claim, { restMs, forSeat: verdict.forSeat });
      else this.#announce(claim, verdict);
    } catch (error) {
      this.#complain(`claim of ${claim.sessionId}`, error);
    }
  }

  async #unreadable(delivery: Delivery, message: string, newer: boolean): Promise<void> {
    // E1: a newer worker takes it, or the claim's deadline informs the instance that no worker did.
    if (newer || delivery.deliveries < triesToParse) return delivery.nak(this.#restMs(delivery.deliveries));
    const { deps } = this.#init;
    const id = delivery.subject.split(".").at(-1) ?? "unknown";
    await buryDelivery(deps, delivery, { what: "claim", id, code: "invalid_claim", message });
  }

  #restMs(deliveries: number): number {
    const { restMinMs, restMaxMs } = this.#init.timing;
    return backoffMs({ initialMs: restMinMs, maxMs: restMaxMs, factor: 1.6 }, Math.min(deliveries, 20));
  }

  #announce({ sessionId, type }: SessionClaim, verdict: Verdict): void {
    const { announce } = this.#init.deps.runtime;
    const { kind } = verdict;
    if (kind === "taken" || kind === "raced") {
      announce({ kind: "claim.seen", sessionId, type, verdict: kind });
      return;
    }
    const why = kind === "forwarded" ? `to ${verdict.to}` : verdict.why;
    announce({ kind: "claim.seen", sessionId, type, verdict: kind === "unanswered" ? "refused" : kind, why });
  }

  #complain(where: string, error: unknown): void {
    if (this.#stopped && isFault(error, "transient")) return;
    announceFault(this.#init.deps.runtime, where, error);
  }
}
