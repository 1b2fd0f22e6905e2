/** How often something happened lately. */
export class Recent {
  readonly #windowMs: number;
  #at: number[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Also of what happened before it was seen, in any order. */
  add(at: number): void {
    this.#at.push(at);
  }

  count(now: number): number {
    const oldest = now - this.#windowMs;
    if (this.#at.some((at) => at <= oldest)) this.#at = this.#at.filter((at) => at > oldest);
    return this.#at.length;
  }

  /** Watched for less than the window: over the time it was watched, at least a second. */
  perSecond(now: number, since: number): number {
    const seconds = Math.min(this.#windowMs, Math.max(1000, now - since)) / 1000;
    return Math.round((this.count(now) / seconds) * 10) / 10;
  }
}
