/** Keys seen of late, bounded: the oldest are forgotten first. */
export class Seen {
  readonly #keys = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** False where it was there already. */
  add(key: string): boolean {
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    if (this.#keys.size > this.#most) {
      const [oldest] = this.#keys;
      if (oldest !== undefined) this.#keys.delete(oldest);
    }
    return true;
  }
}
