/**
 * Token buckets over all workers, in the bucket `limits`.
 *
 * RATE-1 A run begins only at an instant that was reserved by a write over the revision the writer knew: of
 *    two workers that race for one instant, one gets it. An instant reserved and not used is lost; no run
 *    ever begins too early.
 * RATE-2 Instants are the server's: the clock of every worker follows it.
 */
import { z } from "zod";
import { Bucket, decode, encode } from "../../../../shared/bus/index.ts";
import { announceFault, jittered, sleep } from "../../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../../deps.ts";

const TokenBucket = z.object({
  v: z.literal(1),
  /** When the bucket will be full again ("theoretical arrival time"), in epoch milliseconds of the server. */
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

const rememberedKeys = 1000;
const retryMs = 5;

export class RateLimiter {
  readonly #deps: Pick<WorkerDeps, "bus" | "names" | "runtime">;
  readonly #bucket: Bucket;
  readonly #known = new Map<string, Known>();

  constructor(deps: Pick<WorkerDeps, "bus" | "names" | "runtime">) {
    this.#deps = deps;
    this.#bucket = new Bucket(deps.bus, deps.names.bucket("limits"), { random: deps.runtime.random });
  }

  /** Reserves the next instant and returns the time until then. Tries until the signal aborts. */
  async reserve(key: string, { intervalMs, burst }: Rate, signal: AbortSignal): Promise<number> {
    for (let tried = 1; !signal.aborted; tried++) {
      try {
        const known = this.#known.get(key) ?? (await this.#read(key));
        const now = this.#deps.runtime.clock.now(); // RATE-2
        const tat = known?.tat ?? 0;
        const at = Math.max(now, tat - (burst - 1) * intervalMs);
        const next = Math.max(at, tat) + intervalMs;
        const value = encode({ v: 1, tat: next });
        // Kept for a minute after the bucket is full again.
        const ttlMs = Math.ceil((next - now + 60_000) / 1000) * 1000;
        const outcome = known
          ? await this.#bucket.update(key, value, known.revision, { ttlMs })
          : await this.#bucket.create(key, value, { ttlMs });
        if (outcome.kind === "written") {
          this.#remember(key, { revision: outcome.revision, tat: next });
          return at - now;
        }
      } catch (error) {
        announceFault(this.#deps.runtime, "worker.rate", error, { code: "rate_unknown" });
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
}
