/**
 * Details of heartbeats, in the `heartbeats` bucket under `<instanceId>.<execution>.<of>`. SerializedJson seldom, read only by
 * an attempt that is not the first; losing one costs repeated work, never correctness.
 */
import { z } from "zod";
import type { ActivityTask } from "../../../schemas/index.ts";
import { type Bus, bucketStream, bucketSubject, decode, type Subjects } from "../../../shared/bus/index.ts";
import type { Runtime, Timer } from "../../../shared/runtime/index.ts";

export interface HeartbeatDeps {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
}

const Heartbeat = z.object({ attempt: z.int(), at: z.number(), details: z.unknown() });

/** Outlives the delay before any sensible next attempt; a completed task's key is removed at once. */
const keptMs = 86_400_000;
const largestBytes = 64 * 1024;

const subjectOf = (names: Subjects, task: ActivityTask): string =>
  bucketSubject(names.bucket("heartbeats"), `${task.instanceId}.${task.execution}.${task.of}`);

/** What the attempt before said last; undefined where it said nothing, or nothing can be read. */
export async function readHeartbeat(deps: HeartbeatDeps, task: ActivityTask): Promise<unknown> {
  const { bus, names, runtime } = deps;
  try {
    const stream = bucketStream(names.bucket("heartbeats"));
    const last = await bus.last(stream, subjectOf(names, task), { leader: true });
    if (!last || last.body.length === 0) return undefined;
    const heartbeat = decode(Heartbeat, last.body);
    return heartbeat.kind === "ok" ? heartbeat.value.details : undefined;
  } catch (error) {
    announceLost(runtime, error);
    return undefined;
  }
}

export function forgetHeartbeat({ bus, names, runtime }: HeartbeatDeps, task: ActivityTask): void {
  // PURGE with a life of its own: it leaves no marker behind.
  const headers = { "KV-Operation": "PURGE" };
  bus
    .publish(subjectOf(names, task), new Uint8Array(), { headers, ttlMs: 60_000 })
    .catch((error: unknown) => announceLost(runtime, error));
}

function announceLost(runtime: Runtime, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  runtime.announce({ kind: "fault", where: "worker.heartbeat", code: "heartbeat_lost", message, error });
}

/** The heartbeats of one running task: at most one write in `everyMs`, the latest details win. */
export class Pulse {
  readonly #deps: HeartbeatDeps;
  readonly #task: ActivityTask;
  readonly #everyMs: number;
  #latest: { details: unknown } | undefined;
  #writing: Promise<void> | undefined;
  #timer: Timer | undefined;
  #wroteAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(deps: HeartbeatDeps, task: ActivityTask) {
    this.#deps = deps;
    this.#task = task;
    this.#everyMs = Math.min(1000, Math.max(100, (task.timeouts.heartbeatMs ?? 4000) / 4));
  }

  get wrote(): boolean {
    return Number.isFinite(this.#wroteAt);
  }

  beat(details: unknown): void {
    if (this.#closed || details === undefined) return;
    this.#latest = { details };
    if (this.#timer || this.#writing) return;
    const { clock } = this.#deps.runtime;
    const waitMs = this.#wroteAt + this.#everyMs - clock.monotonic();
    if (waitMs <= 0) this.#write();
    else this.#timer = clock.after(waitMs, () => this.#write());
  }

  /** No more writes. `keep` stores what was said last, for the next attempt, before it resolves. */
  async close(keep: boolean): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#writing;
    if (keep && this.#latest) await this.#write();
  }

  #write(): Promise<void> {
    this.#timer = undefined;
    const said = this.#latest;
    this.#latest = undefined;
    this.#wroteAt = this.#deps.runtime.clock.monotonic();
    this.#writing = this.#store(said?.details)
      .catch((error: unknown) => announceLost(this.#deps.runtime, error))
      .finally(() => {
        this.#writing = undefined;
        if (this.#latest && !this.#closed) this.beat(this.#latest.details);
      });
    return this.#writing;
  }

  async #store(details: unknown): Promise<void> {
    const { bus, names, runtime } = this.#deps;
    const heartbeat = { attempt: this.#task.attempt, at: runtime.clock.now(), details };
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
