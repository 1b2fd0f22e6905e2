/** A counted right to run. Releasing a slot twice has no effect: no slot is ever given to two runs. */
export interface Slot {
  release(): void;
}

export interface Waiter {
  /** Withdraws the request; returns false if a slot was already given. */
  leave(): boolean;
}

interface SlotsListeners {
  onChange?: () => void;
  /** A slot was released and no request was in line for it. */
  onFree?: () => void;
}

export class Slots {
  readonly max: number;
  readonly #line = new Set<(slot: Slot) => void>();
  readonly #listeners: SlotsListeners;
  #used = 0;

  constructor(max: number, listeners: SlotsListeners = {}) {
    this.max = max;
    this.#listeners = listeners;
  }

  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.max - this.#used;
  }

  get waiting(): number {
    return this.#line.size;
  }

  tryTake(): Slot | undefined {
    if (this.#used >= this.max) return undefined;
    this.#used++;
    this.#listeners.onChange?.();
    return this.#slot();
  }

  /** Calls back with a slot, first come first served; at once if a slot is free. */
  request(onSlot: (slot: Slot) => void): Waiter {
    const slot = this.tryTake();
    if (slot) {
      onSlot(slot);
      return { leave: () => false };
    }
    // One entry per request, even if a caller passes the same function twice.
    const turn = (given: Slot) => onSlot(given);
    this.#line.add(turn);
    return { leave: () => this.#line.delete(turn) };
  }

  /** Resolves to undefined if the signal aborted first. */
  take(signal?: AbortSignal): Promise<Slot | undefined> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve(undefined);
      const onAbort = () => {
        if (waiter.leave()) resolve(undefined);
      };
      const waiter = this.request((slot) => {
        signal?.removeEventListener("abort", onAbort);
        resolve(slot);
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #slot(): Slot {
    let held = true;
    return {
      release: () => {
        if (!held) return;
        held = false;
        this.#release();
      },
    };
  }

  #release(): void {
    const [next] = this.#line;
    if (next) {
      this.#line.delete(next);
      next(this.#slot());
      return;
    }
    this.#used--;
    this.#listeners.onChange?.();
    this.#listeners.onFree?.();
  }
}
