/**
 * Instances that may get a stream of their own for their history once they have run for a while. Most
 * instances end before that, and the server takes longer to make a stream than to run them.
 */
import type { Clock, Timer } from "../../../shared/runtime/index.ts";

interface Young {
  /** Called when the instance has run long enough. */
  moveNow(): void;
}

export class LongLived {
  /** 0: instances get their stream with their first commit. */
  readonly afterMs: number;
  readonly #clock: Clock;
  /** Young instances and since when they run, oldest first. */
  readonly #young = new Map<Young, number>();
  #timer: Timer | undefined;

  constructor(clock: Clock, afterMs: number) {
    this.#clock = clock;
    this.afterMs = afterMs;
  }

  add(instance: Young): void {
    if (this.#young.has(instance)) return;
    this.#young.set(instance, this.#clock.monotonic());
    this.#timer ??= this.#clock.after(this.afterMs, () => this.#look());
  }

  withdraw(instance: Young): void {
    this.#young.delete(instance);
  }

  /** One timer serves all instances. */
  #look(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (const [instance, since] of this.#young) {
      const leftMs = since + this.afterMs - now;
      if (leftMs > 0) {
        this.#timer = this.#clock.after(leftMs, () => this.#look());
        return;
      }
      this.#young.delete(instance);
      instance.moveNow();
    }
  }
}
