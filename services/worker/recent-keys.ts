/** Keys seen of late, bounded: the oldest are forgotten first. */
export class RecentKeys {
  readonly #keys = new Set<string>();
  /** In order of arrival, overwritten in a circle: taking the first of a large Set gets slower with every one taken. */
  readonly #circle: string[] = [];
  readonly #most: number;
  #next = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** False where it was there already. */
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
