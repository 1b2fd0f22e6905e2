/**
 * Publishes the summary of one instance, its read model. A summary is published after its commit, and never
 * over a newer summary.
 */
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
/** Room for subject and headers within the server's payload limit. */
const headroomBytes = 8 * 1024;
/** If the values do not fit into one message together, those larger than this move to the object store. */
const keptBytes = 1024;

export class Summaries {
  readonly #deps: EngineDeps;
  /** Aborted when the partition is lost. */
  readonly #signal: AbortSignal;
  /** Revision of this owner's last write; undefined before the first. */
  #revision: number | undefined;
  #parked: Fault | undefined;
  /** Fields that a newer version wrote and this version does not know (E1). */
  #kept: Record<string, unknown> = {};
  /** Set while the first summary is unpublished; `overdue`: publish it at the end of the next turn. */
  #owed: "later" | "overdue" | undefined;

  /**
   * `before`: what is known of the instance. `none`: it has no summary yet, and the first write needs no
   * look. `anchored`: its owner may have died before it published the first summary (late-summaries.ts).
   */
  constructor(deps: EngineDeps, signal: AbortSignal, before: "none" | "some" | "anchored") {
    this.#deps = deps;
    this.#signal = signal;
    this.#revision = before === "none" ? 0 : undefined;
    this.#owed = before === "anchored" ? "overdue" : undefined;
  }

  get owed(): boolean {
    return this.#owed !== undefined;
  }

  /** Called when the first summary has waited long enough. */
  hurry(): void {
    if (this.#owed) this.#owed = "overdue";
  }

  /**
   * Publishes the summary at the end of the turn: what the turn has recorded until then is not in the history
   * yet.
   */
  owe(): void {
    this.#owed = "overdue";
  }

  set parked(fault: Fault | undefined) {
    this.#parked = fault;
  }

  /**
   * Publishes a changed state; `vouched`: a message stands for the summary, so a first one may be postponed.
   */
  async show(state: Readonly<InstanceState>, vouched: boolean): Promise<void> {
    if (vouched && this.#revision === 0 && !isEnded(state)) this.#owed ??= "later";
    else await this.write(state);
  }

  /**
   * Called at the end of the turn: publishes an owed summary, unless an unacknowledged message stands for it.
   */
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
      // The next change of the instance repairs this, or the redelivery that follows if this process dies.
      const message = `summary of ${state.instanceId}: ${String(error)}`;
      runtime.announce({ kind: "fault", where: "summaries", code: "summary_failed", message, error });
      throw error;
    }
    // A client that waits for the end finds the result in the notice itself, if the result is small enough.
    const ended = isEnded(state);
    const notice = ended && body.length <= maxNoticeBytes ? body : encode({ status: summary.status });
    bus.send(names.notice(state.instanceId, ended ? "ended" : "changed"), notice);
  }

  async #store(summary: InstanceSummary, body: Uint8Array): Promise<void> {
    const key = summary.instanceId;
    for (let attempt = 0; attempt < 5; attempt++) {
      // The partition has another owner: that one writes the summary, or the instance was removed.
      if (attempt > 0 && this.#signal.aborted) return;
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

  /**
   * Each value fitted into the message that brought it; all values together, with the other fields, may not
   * fit into one.
   */
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

  /** A stale owner that wakes up late must not overwrite a newer summary. */
  async #look(summary: InstanceSummary): Promise<number | "newer"> {
    const looked = await this.#deps.registers.instances.look(summary.instanceId, { leader: true });
    if (looked.kind === "none") return 0;
    // E2: the history is right, whatever the entry says.
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
