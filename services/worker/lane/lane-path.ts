/**
 * Sends results of lane work back to the owner. If the work ends within a few milliseconds, its result is the
 * reply to the offer, which saves a receipt. Otherwise the worker replies that it took the work and sends the
 * result later.
 */
import {
  type ActivityReport,
  type LaneAnswer,
  LaneAnswer as LaneAnswerSchema,
  type LaneReturn,
  laneOwnerHeader,
  laneRecordingKey,
} from "../../../schemas/index.ts";
import { type CoreMessage, decode, encode } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Timer } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";

type LaneDeps = Pick<WorkerDeps, "bus" | "names" | "runtime" | "identity" | "recordings">;

/** Short, because the owner waits for the reply before it goes on. */
export const soonMs = 5;
const recordedMs = 2_000;
const refused = encode({ v: 1, kind: "refused" } satisfies LaneAnswer);

/** Returns the result of work that did not come by a queue to its sender. */
export interface ReplyPath {
  /** Resolves to false if the report must go through the inbox. */
  report(instanceId: string, report: ActivityReport): Promise<boolean>;
  /**
   * Called when this worker will not finish the work. `untouched`: its code never began. Undefined if the
   * sender learns of it by the lease.
   */
  drop?(untouched: boolean): void;
}

export class LanePath implements ReplyPath {
  readonly #deps: LaneDeps;
  readonly #owner: string;
  /** A longer result is sent in a message of its own. */
  readonly #longestAnswer: number;
  #reply: CoreMessage["reply"];
  #soon: Timer | undefined;

  constructor(deps: LaneDeps, message: Pick<CoreMessage, "headers" | "reply">, longestAnswer = Infinity) {
    this.#deps = deps;
    this.#longestAnswer = longestAnswer;
    this.#owner = message.headers[laneOwnerHeader] ?? "";
    this.#reply = message.reply;
  }

  refuse(): void {
    this.#answer(refused);
  }

  /**
   * Replies that this worker has the work. The reply waits a little and is left out if the result comes
   * first.
   */
  take({ atOnce = false } = {}): void {
    if (atOnce || !this.#deps.recordings) this.#replyTaken();
    else this.#soon = this.#deps.runtime.clock.after(soonMs, () => this.#replyTaken());
  }

  /** Resolves to true once the result is in the history; otherwise the report must go through the inbox. */
  async report(instanceId: string, report: ActivityReport): Promise<boolean> {
    const { identity, recordings } = this.#deps;
    if (!this.#reply || !recordings || report.result.kind === "started")
      return this.#toOwner(instanceId, report);
    const answer = encode({ v: 1, kind: "done", workerId: identity.workerId, report });
    if (answer.length > this.#longestAnswer) return this.#toOwner(instanceId, report);
    const recorded = recordings.wait(laneRecordingKey(instanceId, report), this.#owner);
    this.#answer(answer);
    return recorded;
  }

  /**
   * Called when this worker cannot finish the work. If the message gets lost, the owner learns of it by
   * asking (LANE-4).
   */
  giveBack(instanceId: string, { execution, of, attempt, capability }: Omit<LaneReturn, "v">): void {
    if (this.#reply) return this.refuse();
    const { bus, names } = this.#deps;
    const returned: LaneReturn = { v: 1, execution, of, attempt, capability };
    bus.send(names.laneOfOwner(this.#owner, instanceId, "returned"), encode(returned));
  }

  async #toOwner(instanceId: string, report: ActivityReport): Promise<boolean> {
    this.#replyTaken();
    const { bus, recordings } = this.#deps;
    if (!bus.connected()) return false;
    const confirmed = this.#confirmed(instanceId, report);
    return recordings ? recordings.waitFor(confirmed, this.#owner) : confirmed;
  }

  async #confirmed(instanceId: string, report: ActivityReport): Promise<boolean> {
    const { bus, names } = this.#deps;
    try {
      const subject = names.laneOfOwner(this.#owner, instanceId, "report");
      const reply = await bus.request(subject, encode(report), { timeoutMs: recordedMs });
      if (reply.kind !== "reply") return false;
      const answer = decode(LaneAnswerSchema, reply.body);
      return answer.kind === "ok" && answer.value.kind === "recorded";
    } catch (error) {
      if (isFault(error)) return false; // the inbox is next; a lasting fault shows there
      throw error;
    }
  }

  #replyTaken(): void {
    if (this.#reply) this.#answer(encode({ v: 1, kind: "taken", workerId: this.#deps.identity.workerId }));
  }

  #answer(body: Uint8Array): void {
    this.#soon?.cancel();
    this.#soon = undefined;
    const reply = this.#reply;
    this.#reply = undefined;
    reply?.(body);
  }
}
