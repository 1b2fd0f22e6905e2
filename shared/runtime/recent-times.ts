/** When each of the latest keys was added, by the wall clock; bounded in number and in time. */
export class RecentTimes {
  readonly #at = new Map<string, number>();
  /**
   * Keys in order of arrival, overwritten in a circle: removing the first key of a large Map gets slower with
   * each removal.
   */
  readonly #circle: string[] = [];
  readonly #most: number;
  readonly #forMs: number;
  #next = 0;

  constructor(most: number, forMs: number) {
    this.#most = most;
    this.#forMs = forMs;
  }

  add(key: string, now: number): void {
    if (!this.#at.has(key)) {
      const oldest = this.#circle[this.#next];
      if (oldest !== undefined) this.#at.delete(oldest);
      this.#circle[this.#next] = key;
      this.#next = (this.#next + 1) % this.#most;
    }
    this.#at.set(key, now);
  }

  /** Undefined if the key was not added, or too long ago. */
  at(key: string, now: number): number | undefined {
    const at = this.#at.get(key);
    return at !== undefined && now - at <= this.#forMs ? at : undefined;
  }
}
