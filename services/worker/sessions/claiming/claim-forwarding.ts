/**
 * Claims offered by plain requests: by orchestrators, before they put a claim into its queue (CLAIM-5), and for
 * workers that have an orchestrator pass a claim to the one that fits best.
 */
import { ClaimAnswer, SessionClaim } from "../../../../schemas/index.ts";
import { type CoreMessage, decode, encode, type Stoppable } from "../../../../shared/bus/index.ts";
import { once, type Service } from "../../../../shared/runtime/index.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import { ClaimReply } from "./claim-reply.ts";
import type { Fleet } from "./fleet.ts";

type Verdict = ClaimAnswer["verdict"];

type OnOffer = (claim: SessionClaim, reply: ClaimReply) => Promise<Verdict>;

export class ClaimForwarding implements Service {
  readonly #deps: SessionDeps;
  readonly #timing: SessionTiming;
  readonly #fleet: Fleet;
  readonly #onOffer: OnOffer;
  readonly #types: readonly string[];
  #subscriptions: Stoppable[] = [];

  constructor(
    deps: SessionDeps,
    timing: SessionTiming,
    types: readonly string[],
    fleet: Fleet,
    onOffer: OnOffer,
  ) {
    this.#deps = deps;
    this.#timing = timing;
    this.#types = types;
    this.#fleet = fleet;
    this.#onOffer = onOffer;
  }

  async start(): Promise<void> {
    const { bus, names, identity } = this.#deps;
    const { workerId } = identity;
    const subjects = [names.nudge(workerId), ...this.#types.map((type) => names.claimOffer(workerId, type))];
    this.#subscriptions = await Promise.all(
      subjects.map((subject) => bus.subscribe(subject, {}, (message) => void this.#answer(message))),
    );
  }

  stop = once(async () => {
    await Promise.all(this.#subscriptions.map((subscription) => subscription.stop()));
  });

  async send(workerId: string, claim: SessionClaim): Promise<Verdict | "unanswered"> {
    const { bus, names, generation } = this.#deps;
    this.#fleet.others.offering(workerId, claim);
    const subject = generation.allows(2) ? names.claimPass(workerId) : names.nudge(workerId);
    const answer = await this.#ask(subject, claim, bus);
    const isTaken = answer?.verdict === "taken";
    this.#fleet.others.answered(workerId, claim, answer && { used: answer.used, isTaken });
    return answer?.verdict ?? "unanswered";
  }

  async #ask(
    subject: string,
    claim: SessionClaim,
    bus: SessionDeps["bus"],
  ): Promise<ClaimAnswer | undefined> {
    const reply = await bus.request(subject, encode(claim), { timeoutMs: this.#timing.forwardMs });
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
