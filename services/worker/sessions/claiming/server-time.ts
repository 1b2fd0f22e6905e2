import type { Clock } from "../../../../shared/runtime/index.ts";

/**
 * The server's wall clock as far as messages tell: a message is never delivered before it was stored, so the smallest
 * difference seen is how far this machine's clock is ahead. A worker an hour off must not call every claim expired (F30).
 */
export class ServerTime {
  readonly #clock: Clock;
  #aheadMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `storedAt` is the server's time of storage of a message that has just arrived. */
  saw(storedAt: number): void {
    const ahead = this.#clock.now() - storedAt;
    this.#aheadMs = Math.min(ahead, this.#aheadMs ?? ahead);
  }

  /** Undefined before the first message. */
  now(): number | undefined {
    return this.#aheadMs === undefined ? undefined : this.#clock.now() - this.#aheadMs;
  }
}
