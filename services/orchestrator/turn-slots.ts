/**
 * How many turns of this process are under way at once. What thousands of turns hold while they wait for the server
 * together outlives the young generation: the process grows to several times what its instances need, and stays so. A
 * hundred keep the server as busy; messages beyond them wait in the mailboxes of their instances.
 *
 * A turn that takes long no longer counts: a stream that does not answer must not hold up the instances of others.
 */
import type { Clock, Timer } from "../../shared/runtime/index.ts";

const turnsAtOnce = 128;
const countedForMs = 1000;

export class TurnSlots {
  readonly #clock: Clock;
  readonly #count: number;
  /** Turns that count and since when, oldest first. */
  readonly #counted = new Map<object, number>();
  readonly #waiting: (() => void)[] = [];
  #timer: Timer | undefined;

  constructor(clock: Clock, count = turnsAtOnce) {
    this.#clock = clock;
    this.#count = count;
  }

  /** Undefined: go ahead. Otherwise: when it resolves, first come first served. */
  take(who: object): Promise<void> | undefined {
    if (this.#counted.size < this.#count) {
      this.#counted.set(who, this.#clock.monotonic());
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        this.#counted.set(who, this.#clock.monotonic());
        resolve();
      });
      this.#watch();
    });
  }

  give(who: object): void {
    if (this.#counted.delete(who)) this.#letIn();
  }

  #letIn(): void {
    while (this.#counted.size < this.#count) {
      const next = this.#waiting.shift();
      if (!next) return;
      next();
    }
  }

  /** As long as somebody waits. */
  #watch(): void {
    if (this.#timer || this.#waiting.length === 0) return;
    const [oldest = 0] = this.#counted.values();
    const leftMs = oldest + countedForMs - this.#clock.monotonic();
    this.#timer = this.#clock.after(Math.max(1, leftMs), () => {
      this.#timer = undefined;
      const before = this.#clock.monotonic() - countedForMs;
      for (const [who, since] of this.#counted) if (since <= before) this.#counted.delete(who);
      this.#letIn();
      this.#watch();
    });
  }
}
