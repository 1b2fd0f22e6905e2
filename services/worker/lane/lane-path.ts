/**
 * The way back of work that came by the lane. What ends soon is itself the answer to the offer, which saves the
 * receipt; what takes longer is said to be taken, and its result goes to the owner by itself.
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

export type LaneDeps = Pick<WorkerDeps, "bus" | "names" | "runtime" | "identity" | "recordings">;

/** The owner waits for the answer before it goes on. */
const soonMs = 5;
const recordedMs = 2_000;
const refused = encode({ v: 1, kind: "refused" } satisfies LaneAnswer);

export class LanePath {
  readonly #deps: LaneDeps;
  readonly #owner: string;
  #reply: CoreMessage["reply"];
  #soon: Timer | undefined;

  constructor(deps: LaneDeps, message: CoreMessage) {
    this.#deps = deps;
    this.#owner = message.headers[laneOwnerHeader] ?? "";
    this.#reply = message.reply;
  }

  refuse(): void {
    this.#answer(refused);
  }

  /** In our hands. Said a little later, or never if the result is there before. */
  take({ atOnce = false } = {}): void {
    if (atOnce || !this.#deps.recordings) this.#sayTaken();
    else this.#soon = this.#deps.runtime.clock.after(soonMs, () => this.#sayTaken());
  }

  /** True when it is in the history; otherwise it must go by the inbox. */
  async tell(instanceId: string, report: ActivityReport): Promise<boolean> {
    const { identity, recordings } = this.#deps;
    if (!this.#reply || !recordings || report.result.kind === "started")
      return this.#toOwner(instanceId, report);
    const answer = { v: 1, kind: "done", workerId: identity.workerId, report };
    const recorded = recordings.wait(laneRecordingKey(instanceId, report));
    this.#answer(encode(answer));
    return recorded;
  }

  /** It cannot be finished here. If this gets lost, the owner finds out by asking (LANE-4). */
  giveBack(instanceId: string, { execution, of, attempt }: Omit<LaneReturn, "v">): void {
    if (this.#reply) return this.refuse();
    const { bus, names } = this.#deps;
    const returned: LaneReturn = { v: 1, execution, of, attempt };
    bus.send(names.laneOfOwner(this.#owner, instanceId, "returned"), encode(returned));
  }

  async #toOwner(instanceId: string, report: ActivityReport): Promise<boolean> {
    this.#sayTaken();
    const { bus, names } = this.#deps;
    if (!bus.connected()) return false;
    try {
      const subject = names.laneOfOwner(this.#owner, instanceId, "report");
      const reply = await bus.request(subject, encode(report), { timeoutMs: recordedMs });
      if (reply.kind !== "reply") return false;
      const answer = decode(LaneAnswerSchema, reply.body);
      return answer.kind === "ok" && answer.value.kind === "recorded";
    } catch (error) {
      if (isFault(error)) return false; // the inbox is tried next, and says what is wrong
      throw error;
    }
  }

  #sayTaken(): void {
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
