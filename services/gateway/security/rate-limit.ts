/**
 * A token bucket per caller: short bursts pass, a flood does not. Full buckets are forgotten, which bounds
 * the memory.
 */
import type { Clock } from "../../../shared/runtime/index.ts";

interface RateLimitOptions {
  perSecond: number;
  burst: number;
}

interface Bucket {
  left: number;
  at: number;
}

const mostCallers = 10_000;

export class RateLimit {
  readonly #clock: Clock;
  readonly #options: RateLimitOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock, options: RateLimitOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Seconds to wait; 0 if the request may proceed. */
  take(caller: string): number {
    const now = this.#clock.monotonic();
    const { perSecond, burst } = this.#options;
    const bucket = this.#buckets.get(caller) ?? { left: burst, at: now };
    const left = Math.min(burst, bucket.left + ((now - bucket.at) / 1000) * perSecond);
    // Inserted again so that the map stays in order of use.
    this.#buckets.delete(caller);
    this.#buckets.set(caller, { left: left >= 1 ? left - 1 : left, at: now });
    this.#forget(now);
    return left >= 1 ? 0 : Math.max(1, Math.ceil((1 - left) / perSecond));
  }

  #forget(now: number): void {
    const { perSecond, burst } = this.#options;
    for (const [caller, bucket] of this.#buckets) {
      const full = bucket.left + ((now - bucket.at) / 1000) * perSecond >= burst;
      if (!full && this.#buckets.size <= mostCallers) return;
      this.#buckets.delete(caller);
    }
  }
}
