import { type WorkerControl, WorkerInfo } from "../../../schemas/index.ts";
import { Bucket, encode, requireToken, TypedBucket } from "../../bus/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { userFacing } from "../user-facing.ts";
import type { ClientParts } from "./client-options.ts";

const controlTimeoutMs = 3_000;

/**
 * Lists and drains live workers.
 *
 * @example
 * ```ts
 * const old = (await client.workers.list()).filter(({ buildId }) => buildId !== current);
 * for (const { workerId } of old) await client.workers.drain(workerId);
 * ```
 */
export class WorkerClient {
  readonly #parts: ClientParts;
  readonly #workers: TypedBucket<WorkerInfo>;

  /** @internal Part of {@link Client}. */
  constructor(parts: ClientParts) {
    this.#parts = parts;
    const { bus, names, runtime } = parts;
    const bucket = new Bucket(bus, names.bucket("workers"), { random: runtime.random });
    this.#workers = new TypedBucket<WorkerInfo>(bucket, WorkerInfo, runtime.announce);
  }

  list(): Promise<WorkerInfo[]> {
    return userFacing(async () => {
      const alive: WorkerInfo[] = [];
      for await (const { value } of this.#workers.entries()) alive.push(value);
      return alive.sort((a, b) => (a.workerId < b.workerId ? -1 : 1));
    });
  }

  describe(workerId: string): Promise<WorkerInfo> {
    return userFacing(async () => {
      const entry = await this.#workers.get(requireToken("worker id", workerId));
      if (entry) return entry.value;
      throw new HoldfastError({ code: "worker_not_found", message: `there is no worker ${workerId}` });
    });
  }

  /** The worker takes no new work, finishes what it has, and exits. */
  drain(workerId: string): Promise<void> {
    return userFacing(async () => {
      const { bus, names } = this.#parts;
      requireToken("worker id", workerId);
      const control: WorkerControl = { kind: "drain" };
      const options = { timeoutMs: controlTimeoutMs };
      const reply = await bus.request(names.workerControl(workerId), encode(control), options);
      if (reply.kind === "reply") return;
      throw new HoldfastError({
        code: "worker_not_found",
        message: `worker ${workerId} did not answer within ${controlTimeoutMs} ms: it may have ended`,
        retryable: true,
      });
    });
  }
}
