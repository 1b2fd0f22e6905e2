import type { Clock } from "../runtime/index.ts";

const stepMs = 25;

/**
 * Runs items at their times, those of one step together: thousands of leases cost tens of timers a second,
 * and their messages leave in few writes. There is no removal: the handler skips an item that is no longer
 * wanted.
 */
export class DueTimes<T> {
  readonly #clock: Clock;
  readonly #onDue: (items: T[]) => void;
  readonly #steps = new Map<number, { items: T[]; cancel: () => void }>();

  constructor(clock: Clock, onDue: (items: T[]) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** `at` on the monotonic clock. An item is never early, and at most one step late. */
  add(item: T, at: number): void {
    const now = this.#clock.monotonic();
    const step = Math.ceil(Math.max(at, now) / stepMs);
    const known = this.#steps.get(step);
    if (known) {
      known.items.push(item);
      return;
    }
    const items = [item];
    const timer = this.#clock.after(step * stepMs - now, () => {
      this.#steps.delete(step);
      this.#onDue(items);
    });
    this.#steps.set(step, { items, cancel: () => timer.cancel() });
  }

  clear(): void {
    for (const step of this.#steps.values()) step.cancel();
    this.#steps.clear();
  }
}
