/** The read model of one instance. Written behind the commit, never behind a newer summary. */
import {
  type InstanceId,
  type InstanceStatus,
  type InstanceSummary,
  InstanceSummary as InstanceSummarySchema,
  type Name,
  type Payload,
  type SessionId,
  unknownFields,
} from "../../../schemas/index.ts";
import { encode, Payloads, parseJson } from "../../../shared/bus/index.ts";
import type { Fault } from "../../../shared/errors/index.ts";
import { type InstanceState, isEnded } from "../../../shared/replay/index.ts";
import type { EngineDeps } from "../engine-deps.ts";

const maxNoticeBytes = 32 * 1024;
/** For subject and headers, inside the server's limit. */
const headroomBytes = 8 * 1024;
/** Where not all values fit into one message, larger ones than this move to the object store. */
const keptBytes = 1024;

export class Summaries {
  readonly #deps: EngineDeps;
  /** Revision of our last write; undefined before the first. */
  #revision: number | undefined;
  #parked: Fault | undefined;
  /** What a newer version wrote beside what we know (E1). */
  #kept: Record<string, unknown> = {};
  /** The first one is still to be written; `overdue`: with the end of the next turn. */
  #owed: "later" | "overdue" | undefined;

  /**
   * `before`: what is known of the instance. None: it has no summary yet, and the first write needs no look. Anchored:
   * its owner may have died before it wrote the first (late-summaries.ts).
   */
  constructor(deps: EngineDeps, before: "none" | "some" | "anchored") {
    this.#deps = deps;
    this.#revision = before === "none" ? 0 : undefined;
    this.#owed = before === "anchored" ? "overdue" : undefined;
  }

  get owed(): boolean {
    return this.#owed !== undefined;
  }

  /** The first one has waited long enough. */
  hurry(): void {
    if (this.#owed) this.#owed = "overdue";
  }

  /** To be written when the turn is over: what it has recorded until then is not in the history yet. */
  owe(): void {
    this.#owed = "overdue";
  }

  set parked(fault: Fault | undefined) {
    this.#parked = fault;
  }

  /** People are to see what changed; `vouched`: it may wait, if it is the first they see. */
  async show(state: Readonly<InstanceState>, vouched: boolean): Promise<void> {
    if (vouched && this.#revision === 0 && !isEnded(state)) this.#owed ??= "later";
    else await this.write(state);
  }

  /** The turn is over: what is owed is written, unless a message stays unacknowledged that vouches for it. */
  async settle(state: Readonly<InstanceState>, vouched: boolean): Promise<void> {
    if (this.#owed === "overdue" || !vouched) await this.write(state);
  }

  async write(state: Readonly<InstanceState>): Promise<void> {
    const summary = this.#summaryOf(state);
    let body = encode(summary);
    const { bus, names, runtime } = this.#deps;
    try {
      if (body.length > bus.maxPayloadBytes - headroomBytes) body = encode(await this.#fitting(summary));
      await this.#store(summary, body);
      this.#owed = undefined;
    } catch (error) {
      // Repaired by the next change of the instance, or by the redelivery that follows if this process dies.
      const message = `summary of ${state.instanceId}: ${String(error)}`;
      runtime.announce({ kind: "fault", where: "summaries", code: "summary_failed", message, error });
      throw error;
    }
    // Who waits for the end finds it in the notice itself, if it is small enough to be sent to everybody.
    const ended = isEnded(state);
    const notice = ended && body.length <= maxNoticeBytes ? body : encode({ status: summary.status });
    bus.send(names.notice(state.instanceId, ended ? "ended" : "changed"), notice);
  }

  async #store(summary: InstanceSummary, body: Uint8Array): Promise<void> {
    const key = summary.instanceId;
    for (let attempt = 0; attempt < 5; attempt++) {
      const revision = this.#revision ?? (await this.#look(summary));
      if (revision === "newer") return;
      const whole = Object.keys(this.#kept).length === 0 ? body : this.#withKept(body);
      const outcome = await this.#deps.registers.instances.bucket.update(key, whole, revision);
      if (outcome.kind === "written") {
        this.#revision = outcome.revision;
        return;
      }
      this.#revision = undefined;
    }
    throw new Error("could not be written");
  }

  #withKept(body: Uint8Array): Uint8Array {
    const parsed = parseJson(body);
    if (parsed.kind === "invalid" || typeof parsed.value !== "object") return body;
    const whole = encode({ ...this.#kept, ...parsed.value });
    return whole.length > this.#deps.bus.maxPayloadBytes - headroomBytes ? body : whole;
  }

  /** Each value fitted into the message that brought it; together they may not, nor with what is said beside them. */
  async #fitting(summary: InstanceSummary): Promise<InstanceSummary> {
    const payloads = new Payloads(this.#deps.bus.blobs, { inlineBytes: keptBytes });
    const moved = async (payload: Payload | undefined) =>
      payload && "json" in payload ? payloads.wrap(payload.json, summary.instanceId) : payload;
    return {
      ...summary,
      input: await moved(summary.input),
      output: await moved(summary.output),
      customStatus: await moved(summary.customStatus),
    };
  }

  /** A stale owner that wakes up late must not cover what happened since. */
  async #look(summary: InstanceSummary): Promise<number | "newer"> {
    const looked = await this.#deps.registers.instances.look(summary.instanceId, { leader: true });
    if (looked.kind === "none") return 0;
    // E2: the history is right, whatever is written there.
    if (looked.kind === "unreadable") return looked.entry.revision;
    const { value, revision } = looked.entry;
    const newer =
      value.execution > summary.execution ||
      (value.execution === summary.execution && value.events > summary.events);
    if (newer) return "newer";
    this.#kept = unknownFields(InstanceSummarySchema, value);
    return revision;
  }

  #summaryOf(state: Readonly<InstanceState>): InstanceSummary {
    const status: InstanceStatus = this.#parked
      ? "parked"
      : state.status === "absent"
        ? "pending"
        : state.status;
    const parked = this.#parked;
    return {
      v: 1,
      instanceId: state.instanceId as InstanceId,
      name: state.name as Name | undefined,
      status,
      execution: state.execution,
      events: state.lastEventId,
      startedAt: state.startedAt,
      endedAt: state.endedAt,
      updatedAt: this.#deps.runtime.clock.now(),
      input: state.input,
      output: state.output,
      error: parked
        ? { code: parked.code, message: parked.message, retryable: true, details: parked.details }
        : state.error,
      customStatus: state.customStatus,
      parent: state.parent,
      sessions: [...state.sessions.keys()] as SessionId[],
    };
  }
}
