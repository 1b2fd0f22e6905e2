/**
 * Limits how many turns of this process run at once. What thousands of turns hold while they wait for the
 * server outlives V8's young generation: the process grows to several times what its instances need, and
 * stays that large. A hundred turns keep the server just as busy; further messages wait in the mailboxes of
 * their instances.
 *
 * A turn that takes long no longer counts, so that a stream that does not answer does not hold up other
 * instances.
 */
import type { Clock, Timer } from "../../shared/runtime/index.ts";

const turnsAtOnce = 128;
const countedForMs = 1000;

export class TurnSlots {
  readonly #clock: Clock;
  readonly #count: number;
  /** Turns that count against the limit, with their start times, oldest first. */
  readonly #counted = new Map<object, number>();
  readonly #waiting: (() => void)[] = [];
  #timer: Timer | undefined;

  constructor(clock: Clock, count = turnsAtOnce) {
    this.#clock = clock;
    this.#count = count;
  }

  /**
   * Returns undefined if the turn may begin at once, otherwise a promise that resolves when it may; first
   * come, first served.
   */
  take(turn: object): Promise<void> | undefined {
    if (this.#counted.size < this.#count) {
      this.#counted.set(turn, this.#clock.monotonic());
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        this.#counted.set(turn, this.#clock.monotonic());
        resolve();
      });
      this.#watch();
    });
  }

  give(turn: object): void {
    if (this.#counted.delete(turn)) this.#letIn();
  }

  #letIn(): void {
    while (this.#counted.size < this.#count) {
      const next = this.#waiting.shift();
      if (!next) return;
      next();
    }
  }

  /** Runs while turns wait for a slot. */
  #watch(): void {
    if (this.#timer || this.#waiting.length === 0) return;
    const [oldest = 0] = this.#counted.values();
    const leftMs = oldest + countedForMs - this.#clock.monotonic();
    this.#timer = this.#clock.after(Math.max(1, leftMs), () => {
      this.#timer = undefined;
      const before = this.#clock.monotonic() - countedForMs;
      for (const [turn, since] of this.#counted) if (since <= before) this.#counted.delete(turn);
      this.#letIn();
      this.#watch();
    });
  }
}
