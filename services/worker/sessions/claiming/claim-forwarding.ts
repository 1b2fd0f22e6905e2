/**
 * Claims offered by plain requests: by workers, which pass a claim to the one that fits best, and by
 * orchestrators, which offer it before they put it into its queue (CLAIM-5).
 */
import { ClaimAnswer, SessionClaim } from "../../../../schemas/index.ts";
import { type CoreMessage, decode, encode, type Stoppable } from "../../../../shared/bus/index.ts";
import { once, type Service } from "../../../../shared/runtime/index.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import { ClaimReply } from "./claim-reply.ts";
import type { Fleet } from "./fleet.ts";

type Verdict = ClaimAnswer["verdict"];

export type OnOffer = (claim: SessionClaim, reply: ClaimReply) => Promise<Verdict>;

export class ClaimForwarding implements Service {
  readonly #deps: SessionDeps;
  readonly #timing: SessionTiming;
  readonly #fleet: Fleet;
  readonly #onOffer: OnOffer;
  #subscription: Stoppable | undefined;

  constructor(deps: SessionDeps, timing: SessionTiming, fleet: Fleet, onOffer: OnOffer) {
    this.#deps = deps;
    this.#timing = timing;
    this.#fleet = fleet;
    this.#onOffer = onOffer;
  }

  async start(): Promise<void> {
    const { bus, names, identity } = this.#deps;
    const subject = names.nudge(identity.workerId);
    this.#subscription = await bus.subscribe(subject, {}, (message) => void this.#answer(message));
  }

  stop = once(async () => {
    await this.#subscription?.stop();
  });

  async send(workerId: string, claim: SessionClaim): Promise<Verdict | "unanswered"> {
    const { bus, names } = this.#deps;
    this.#fleet.others.offering(workerId);
    const answer = await this.#ask(names.nudge(workerId), claim, bus);
    const taken = answer?.verdict === "taken" ? claim : undefined;
    this.#fleet.others.answered(workerId, answer && { used: answer.used, taken });
    return answer?.verdict ?? "unanswered";
  }

  async #ask(
    subject: string,
    claim: SessionClaim,
    bus: SessionDeps["bus"],
  ): Promise<ClaimAnswer | undefined> {
    const reply = await bus.request(subject, encode(claim), { timeoutMs: this.#timing.nudgeMs });
    if (reply.kind !== "reply") return undefined;
    const answer = decode(ClaimAnswer, reply.body);
    return answer.kind === "ok" ? answer.value : undefined;
  }

  async #answer(message: CoreMessage): Promise<void> {
    const decoded = decode(SessionClaim, message.body);
    const reply = new ClaimReply(this.#deps, message, () => this.#fleet.self().slots.sessions.used);
    reply.answer(decoded.kind === "ok" ? await this.#onOffer(decoded.value, reply) : "refused");
  }
}
