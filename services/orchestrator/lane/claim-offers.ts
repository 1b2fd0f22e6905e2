/**
 * Offers claims straight to the worker that fits best. A claim that no worker settles by its answer goes by
 * the queue of claims (CLAIM-5).
 */
import { ClaimAnswer, laneOwnerHeader, type SessionClaim } from "../../../schemas/index.ts";
import { type Bus, decode, encode, type Headers, type Subjects } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Generation } from "../../../shared/fleet/index.ts";
import { announceFault, type Runtime } from "../../../shared/runtime/index.ts";
import { type LiveWorkers, OfferedClaims, place } from "../../../shared/sessions/index.ts";
import { closedMs, type Offers } from "./offers.ts";

interface ClaimOffersOptions {
  id: string;
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  workers: Pick<LiveWorkers, "workers">;
  generation: Pick<Generation, "allows">;
}

/**
 * The subject on which a worker receives offered claims; while a process of 0.1.0 is alive, one without the
 * session type.
 */
export const offerSubject = (
  { names, generation }: Pick<ClaimOffersOptions, "names" | "generation">,
  workerId: string,
  type: string,
): string => (generation.allows(2) ? names.claimOffer(workerId, type) : names.nudge(workerId));

interface SettledClaim {
  readonly workerId: string;
  /** Present if the state was ready at once: the worker waits for the confirmation that this is recorded. */
  readonly report: ClaimAnswer["report"];
}

/** Short, because a worker that does not answer may be busy while another one is free. */
export const offerMs = 500;

export class ClaimOffers {
  readonly #options: ClaimOffersOptions;
  readonly #offers: Offers;
  readonly #view: OfferedClaims;
  readonly #headers: Headers;

  constructor(options: ClaimOffersOptions, offers: Offers) {
    this.#options = options;
    this.#offers = offers;
    this.#view = new OfferedClaims(() => options.workers.workers());
    this.#headers = { [laneOwnerHeader]: options.id };
  }

  /** Returns undefined if the claim must go by the queue. */
  async offer(claim: SessionClaim): Promise<SettledClaim | undefined> {
    const placed = place(this.#view.workers(), claim);
    if (placed.kind === "none") return undefined;
    const { workerId } = placed;
    const subject = offerSubject(this.#options, workerId, claim.type);
    if (!this.#offers.isOpen(subject)) return undefined;
    this.#view.offering(workerId, claim);
    const answer = await this.#ask(subject, claim);
    const taken = answer?.verdict === "taken";
    this.#view.answered(workerId, claim, answer && { used: answer.used, isTaken: taken });
    if (!taken) return undefined;
    return { workerId, report: reportOf(claim, answer) };
  }

  async #ask(subject: string, claim: SessionClaim): Promise<ClaimAnswer | undefined> {
    const { bus, runtime } = this.#options;
    try {
      const reply = await bus.request(subject, encode(claim), { timeoutMs: offerMs, headers: this.#headers });
      if (reply.kind !== "reply") {
        this.#offers.close(subject, closedMs[reply.kind]);
        return undefined;
      }
      const answer = decode(ClaimAnswer, reply.body);
      return answer.kind === "ok" ? answer.value : undefined;
    } catch (error) {
      if (isFault(error, "transient")) return undefined; // the bus is away: the queue takes the claim when it is back
      this.#offers.close(subject, closedMs.slow);
      announceFault(runtime, `lane: claim on ${subject}`, error);
      return undefined;
    }
  }
}

/** Ignores a report about any other session than that of the claim. */
function reportOf(claim: SessionClaim, { report }: ClaimAnswer): ClaimAnswer["report"] {
  const isOfClaim = report?.sessionId === claim.sessionId && report.attachment === claim.attachment;
  return isOfClaim && report.report.kind === "activated" ? report : undefined;
}
