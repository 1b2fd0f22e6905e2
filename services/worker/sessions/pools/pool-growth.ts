/**
 * When to ask for one more member. A call that waited is worth a word; if the waiting goes on, the pool is as big as it
 * may be and the words grow rarer.
 */
import type { Clock } from "../../../../shared/runtime/index.ts";

/** Below this a call has not waited, it was on its way. */
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

  /** Whether asking again would be heard at all. */
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
