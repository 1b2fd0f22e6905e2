/**
 * Token buckets over all workers, in the bucket `limits`.
 *
 * RATE-1 A run begins only at an instant that was reserved by a write over the revision the writer knew: of two workers
 *    that race for one instant, one gets it. What was reserved and not used is lost; nothing ever begins too early.
 * RATE-2 Instants are the server's: a worker measures how far its clock is off by writing and reading back.
 */
import { z } from "zod";
import { Bucket, decode, encode } from "../../../shared/bus/index.ts";
import { jittered, sleep } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";

const TokenBucket = z.object({
  v: z.literal(1),
  /** When the next run would be free of any debt, epoch ms of the server. */
  tat: z.number(),
});

export interface Rate {
  intervalMs: number;
  burst: number;
}

interface Known {
  revision: number;
  tat: number;
}

const measureEveryMs = 60_000;
const rememberedKeys = 1000;
const retryMs = 5;

export class RateLimiter {
  readonly #deps: Pick<WorkerDeps, "bus" | "names" | "runtime" | "identity">;
  readonly #bucket: Bucket;
  readonly #known = new Map<string, Known>();
  #clock: { aheadMs: number; measuredAt: number } | undefined;

  constructor(deps: Pick<WorkerDeps, "bus" | "names" | "runtime" | "identity">) {
    this.#deps = deps;
    this.#bucket = new Bucket(deps.bus, deps.names.bucket("limits"), { random: deps.runtime.random });
  }

  /** Reserves the next instant and returns how long it is until then. Does not give up before it is told to. */
  async reserve(key: string, { intervalMs, burst }: Rate, signal: AbortSignal): Promise<number> {
    for (let tried = 1; !signal.aborted; tried++) {
      try {
        const known = this.#known.get(key) ?? (await this.#read(key));
        const now = await this.#serverNow();
        const tat = known?.tat ?? 0;
        const at = Math.max(now, tat - (burst - 1) * intervalMs);
        const next = Math.max(at, tat) + intervalMs;
        const value = encode({ v: 1, tat: next });
        // Kept for a minute after its debt is paid.
        const ttlMs = Math.ceil((next - now + 60_000) / 1000) * 1000;
        const outcome = known
          ? await this.#bucket.update(key, value, known.revision, { ttlMs })
          : await this.#bucket.create(key, value, { ttlMs });
        if (outcome.kind === "written") {
          this.#remember(key, { revision: outcome.revision, tat: next });
          return at - now;
        }
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        this.#deps.runtime.announce({
          kind: "fault",
          where: "worker.rate",
          code: "rate_unknown",
          message,
          error,
        });
      }
      this.#known.delete(key);
      const { clock, random } = this.#deps.runtime;
      await sleep(clock, jittered(retryMs * Math.min(tried, 100), random), signal);
    }
    return 0;
  }

  async #read(key: string): Promise<Known | undefined> {
    const entry = await this.#bucket.get(key, { leader: true });
    if (!entry) return undefined;
    const decoded = decode(TokenBucket, entry.value);
    return { revision: entry.revision, tat: decoded.kind === "ok" ? decoded.value.tat : 0 };
  }

  #remember(key: string, known: Known): void {
    this.#known.delete(key);
    this.#known.set(key, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= rememberedKeys) return;
      this.#known.delete(oldest);
    }
  }

  /** RATE-2 */
  async #serverNow(): Promise<number> {
    const { clock } = this.#deps.runtime;
    if (!this.#clock || clock.monotonic() - this.#clock.measuredAt > measureEveryMs) {
      const key = `clock.${this.#deps.identity.workerId}`;
      const before = clock.now();
      const written = await this.#bucket.put(key, encode({ v: 1 }), { ttlMs: 2 * measureEveryMs });
      const after = clock.now();
      const entry = written.kind === "written" ? await this.#bucket.get(key, { leader: true }) : undefined;
      if (!entry) throw new Error("the server's clock could not be read");
      this.#clock = { aheadMs: (before + after) / 2 - entry.at, measuredAt: clock.monotonic() };
    }
    return clock.now() - this.#clock.aheadMs;
  }
}
