/** The latest keys, bounded in number: the oldest are forgotten first. */
export class RecentKeys {
  readonly #keys = new Set<string>();
  /**
   * Keys in order of arrival, overwritten in a circle: removing the first key of a large Set gets slower with
   * each removal.
   */
  readonly #circle: string[] = [];
  readonly #most: number;
  #next = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Returns false if the key was there already. */
  add(key: string): boolean {
    if (this.#keys.has(key)) return false;
    const oldest = this.#circle[this.#next];
    if (oldest !== undefined) this.#keys.delete(oldest);
    this.#keys.add(key);
    this.#circle[this.#next] = key;
    this.#next = (this.#next + 1) % this.#most;
    return true;
  }
}
