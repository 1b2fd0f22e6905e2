/** Counts recent events and gives their rate. */
export class Recent {
  readonly #windowMs: number;
  #at: number[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Events may be added in any order, also ones from before the watch began. */
  add(at: number): void {
    this.#at.push(at);
  }

  count(now: number): number {
    const oldest = now - this.#windowMs;
    if (this.#at.some((at) => at <= oldest)) this.#at = this.#at.filter((at) => at > oldest);
    return this.#at.length;
  }

  /** If the watch is shorter than the window, the rate is over the time watched, at least a second. */
  perSecond(now: number, since: number): number {
    const seconds = Math.min(this.#windowMs, Math.max(1000, now - since)) / 1000;
    return Math.round((this.count(now) / seconds) * 10) / 10;
  }
}
