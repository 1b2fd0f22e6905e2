/**
 * Details of heartbeats, in the `heartbeats` bucket under `<instanceId>.<execution>.<of>`. Written seldom,
 * and read only by an attempt that is not the first. Losing one costs repeated work, never correctness.
 */
import { z } from "zod";
import type { ActivityTask } from "../../../../schemas/index.ts";
import {
  type Bus,
  bucketStream,
  bucketSubject,
  decode,
  headerNames,
  type Subjects,
} from "../../../../shared/bus/index.ts";
import { detailsKey, detailsProof } from "../../../../shared/capabilities/index.ts";
import { announceFault, type Runtime } from "../../../../shared/runtime/index.ts";
import { Paced } from "../pulling/paced.ts";

export interface HeartbeatDeps {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
}

const Heartbeat = z.object({
  attempt: z.int(),
  at: z.number(),
  details: z.unknown(),
  /** Shows that a worker that was given this task wrote the details (C1). */
  proof: z.string().optional(),
});

/** Outlives the delay before any sensible next attempt; a completed task's key is removed at once. */
const keptMs = 86_400_000;
const largestBytes = 64 * 1024;

/**
 * Often enough that the next attempt finds recent details, seldom enough that code may beat in a tight loop.
 */
export const writeEveryMs = (task: ActivityTask): number =>
  Math.min(1000, Math.max(100, (task.timeouts.heartbeatMs ?? 4000) / 4));

const subjectOf = (names: Subjects, task: ActivityTask): string =>
  bucketSubject(names.bucket("heartbeats"), `${task.instanceId}.${task.execution}.${task.of}`);

/** The last details of the previous attempt; undefined if there are none or they cannot be read. */
export async function readHeartbeat(deps: HeartbeatDeps, task: ActivityTask): Promise<unknown> {
  const { bus, names, runtime } = deps;
  try {
    const stream = bucketStream(names.bucket("heartbeats"));
    const last = await bus.last(stream, subjectOf(names, task), { leader: true });
    if (!last || last.body.length === 0) return undefined;
    const heartbeat = decode(Heartbeat, last.body);
    if (heartbeat.kind === "invalid") return undefined;
    const { attempt, details, proof } = heartbeat.value;
    const key = detailsKey(task);
    if (key === undefined || proof === detailsProof(key, attempt, JSON.stringify(details))) return details;
    const why = proof === undefined ? "missing" : "wrong";
    runtime.announce({ kind: "capability.refused", what: "heartbeat", why, instanceId: task.instanceId });
    return undefined;
  } catch (error) {
    announceLost(runtime, error);
    return undefined;
  }
}

export function forgetHeartbeat({ bus, names, runtime }: HeartbeatDeps, task: ActivityTask): void {
  // PURGE with a time to live of its own: it leaves no marker behind.
  const headers = { [headerNames.kvOperation]: "PURGE" };
  bus
    .publish(subjectOf(names, task), new Uint8Array(), { headers, ttlMs: 60_000 })
    .catch((error: unknown) => announceLost(runtime, error));
}

function announceLost(runtime: Runtime, error: unknown): void {
  announceFault(runtime, "worker.heartbeat", error, { code: "heartbeat_lost" });
}

/** The heartbeat details of one running task: at most one write in `everyMs`, the latest details win. */
export class Pulse {
  readonly #deps: HeartbeatDeps;
  readonly #task: ActivityTask;
  readonly #writes: Paced;
  #latest: { details: unknown } | undefined;

  constructor(deps: HeartbeatDeps, task: ActivityTask) {
    this.#deps = deps;
    this.#task = task;
    this.#writes = new Paced(deps.runtime.clock, writeEveryMs(task), () => this.#write());
  }

  get wrote(): boolean {
    return this.#writes.acted;
  }

  beat(details: unknown): void {
    if (details === undefined) return;
    this.#latest = { details };
    this.#writes.ask();
  }

  /** Ends the writes. `keep` stores the last details for the next attempt before it resolves. */
  async close(keep: boolean): Promise<void> {
    await this.#writes.close();
    if (keep && this.#latest) await this.#write();
  }

  async #write(): Promise<void> {
    const latest = this.#latest;
    this.#latest = undefined;
    try {
      await this.#store(latest?.details);
    } catch (error) {
      announceLost(this.#deps.runtime, error);
    }
  }

  async #store(details: unknown): Promise<void> {
    const { bus, names, runtime } = this.#deps;
    const { attempt } = this.#task;
    const key = detailsKey(this.#task);
    const proof = key === undefined ? undefined : detailsProof(key, attempt, JSON.stringify(details));
    const heartbeat = { attempt, at: runtime.clock.now(), details, proof };
    const body = Buffer.from(JSON.stringify(heartbeat));
    if (body.length > largestBytes) {
      throw new Error(`details of ${body.length} bytes are over the limit of ${largestBytes}`);
    }
    const twice = (this.#task.timeouts.heartbeatMs ?? 0) * 2;
    const ttlMs = Math.ceil(Math.max(keptMs, twice) / 1000) * 1000;
    const outcome = await bus.publish(subjectOf(names, this.#task), body, { ttlMs });
    if (outcome.kind !== "stored") throw new Error("the server did not confirm it");
  }
}
