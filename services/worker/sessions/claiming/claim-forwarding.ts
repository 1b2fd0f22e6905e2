/**
 * Passes a claim to the worker that fits it best. A plain request is enough, because the claim itself stays
 * in its queue.
 */
import { z } from "zod";
import { SessionClaim } from "../../../../schemas/index.ts";
import { type CoreMessage, decode, encode, type Stoppable } from "../../../../shared/bus/index.ts";
import { once, type Service } from "../../../../shared/runtime/index.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import type { Fleet } from "./fleet.ts";

/**
 * `taken`: the claim is settled, by that worker or another. `used`: how many sessions that worker holds now.
 */
const Answer = z.object({ verdict: z.enum(["taken", "refused"]), used: z.int().nonnegative() });
type Answer = z.infer<typeof Answer>;

export type OnNudge = (claim: SessionClaim) => Promise<Answer["verdict"]>;

export class ClaimForwarding implements Service {
  readonly #deps: SessionDeps;
  readonly #timing: SessionTiming;
  readonly #fleet: Fleet;
  readonly #onNudge: OnNudge;
  #subscription: Stoppable | undefined;

  constructor(deps: SessionDeps, timing: SessionTiming, fleet: Fleet, onNudge: OnNudge) {
    this.#deps = deps;
    this.#timing = timing;
    this.#fleet = fleet;
    this.#onNudge = onNudge;
  }

  async start(): Promise<void> {
    const { bus, names, identity } = this.#deps;
    const subject = names.nudge(identity.workerId);
    this.#subscription = await bus.subscribe(subject, {}, (message) => void this.#answer(message));
  }

  stop = once(async () => {
    await this.#subscription?.stop();
  });

  async send(workerId: string, claim: SessionClaim): Promise<Answer["verdict"] | "unanswered"> {
    const { bus, names } = this.#deps;
    this.#fleet.passing(workerId);
    const answer = await this.#ask(names.nudge(workerId), claim, bus);
    const taken = answer?.verdict === "taken" ? claim : undefined;
    this.#fleet.answered(workerId, answer && { used: answer.used, taken });
    return answer?.verdict ?? "unanswered";
  }

  async #ask(subject: string, claim: SessionClaim, bus: SessionDeps["bus"]): Promise<Answer | undefined> {
    const reply = await bus.request(subject, encode(claim), { timeoutMs: this.#timing.nudgeMs });
    if (reply.kind !== "reply") return undefined;
    const answer = decode(Answer, reply.body);
    return answer.kind === "ok" ? answer.value : undefined;
  }

  async #answer(message: CoreMessage): Promise<void> {
    const decoded = decode(SessionClaim, message.body);
    const verdict = decoded.kind === "ok" ? await this.#onNudge(decoded.value) : "refused";
    const answer: Answer = { verdict, used: this.#fleet.self().slots.sessions.used };
    message.reply?.(encode(answer));
  }
}
