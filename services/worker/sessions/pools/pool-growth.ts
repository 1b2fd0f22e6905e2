/**
 * Decides when to ask for one more member. A call that had to wait is a reason to ask; if calls go on
 * waiting, the pool has reached its size and the requests become rarer.
 */
import type { Clock } from "../../../../shared/runtime/index.ts";

/** A shorter wait is only the time of delivery. */
export const waitedEnoughMs = 200;
const firstGapMs = 1_000;
const longestGapMs = 16_000;

export class PoolGrowth {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #ask: (waitedMs: number) => void;
  #gapMs = firstGapMs;
  #silentUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "monotonic">, ask: (waitedMs: number) => void) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** True if it is time to ask again. */
  get due(): boolean {
    return this.#clock.monotonic() >= this.#silentUntil;
  }

  waited(ms: number): void {
    if (ms < waitedEnoughMs) {
      this.#gapMs = firstGapMs;
      return;
    }
    if (!this.due) return;
    this.#silentUntil = this.#clock.monotonic() + this.#gapMs;
    this.#gapMs = Math.min(this.#gapMs * 2, longestGapMs);
    this.#ask(ms);
  }
}
