import type { Clock } from "../../../shared/runtime/index.ts";

/** Time that the test advances. Its wall clock may be set anywhere: lease code must not depend on it (F31). */
export class ManualClock implements Clock {
  wallOffset = 1_700_000_000_000;
  #now = 0;
  /** By time, latest first. */
  #timers: { at: number; fn: () => void }[] = [];

  now(): number {
    return this.wallOffset + this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  after(ms: number, fn: () => void) {
    const timer = { at: this.#now + Math.max(0, ms), fn };
    let [low, high] = [0, this.#timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#timers[middle]?.at ?? 0) > timer.at) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }

  /** Fires what comes due in order, letting promises settle between. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await settle();
      const due = this.#timers.at(-1);
      if (!due || due.at > until) break;
      this.#timers.pop();
      this.#now = Math.max(this.#now, due.at);
      due.fn();
    }
    this.#now = until;
    await settle();
  }

  /** The process was paused: time went on and no timer fired. */
  pause(ms: number): void {
    this.#now += ms;
  }
}

export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
