/** The read model of one instance. Written behind the commit, never behind a newer summary. */
import type { InstanceId, InstanceStatus, InstanceSummary, Name, SessionId } from "../../schemas/index.ts";
import { encode } from "../../shared/bus/index.ts";
import type { Fault } from "../../shared/errors/index.ts";
import { type InstanceState, isEnded } from "../../shared/replay/index.ts";
import type { OrchestratorDeps } from "./deps.ts";

const maxNoticeBytes = 32 * 1024;

export class Summaries {
  readonly #deps: OrchestratorDeps;
  /** Revision of our last write; undefined before the first. */
  #revision: number | undefined;
  #parked: Fault | undefined;

  constructor(deps: OrchestratorDeps, { fresh }: { fresh: boolean }) {
    this.#deps = deps;
    // A new instance has no summary yet: the first write needs no look.
    this.#revision = fresh ? 0 : undefined;
  }

  set parked(fault: Fault | undefined) {
    this.#parked = fault;
  }

  async write(state: Readonly<InstanceState>): Promise<void> {
    const summary = this.#summaryOf(state);
    const body = encode(summary);
    const { bus, names, runtime } = this.#deps;
    try {
      await this.#store(summary, body);
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
      const outcome = await this.#deps.registers.instances.bucket.update(key, body, revision);
      if (outcome.kind === "written") {
        this.#revision = outcome.revision;
        return;
      }
      this.#revision = undefined;
    }
    throw new Error("could not be written");
  }

  /** A stale owner that wakes up late must not cover what happened since. */
  async #look(summary: InstanceSummary): Promise<number | "newer"> {
    const there = await this.#deps.registers.instances.get(summary.instanceId, { leader: true });
    if (!there) return 0;
    const { value } = there;
    const newer =
      value.execution > summary.execution ||
      (value.execution === summary.execution && value.events > summary.events);
    return newer ? "newer" : there.revision;
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
