/**
 * The newest of many, one each, while they are read: never many more in memory than were asked for. What changes while
 * it is read comes twice, the later one last; that one counts, also where it no longer fits.
 */
export class Newest<T> {
  readonly #limit: number;
  readonly #order: (a: T, b: T) => number;
  #kept = new Map<string, T>();

  /** `order` puts the newest first and must not change with what may change meanwhile. */
  constructor(limit: number, order: (a: T, b: T) => number) {
    this.#limit = limit;
    this.#order = order;
  }

  /** Undefined: what was there under this id does not fit any more. */
  put(id: string, item: T | undefined): void {
    if (item === undefined) {
      this.#kept.delete(id);
      return;
    }
    this.#kept.set(id, item);
    if (this.#kept.size >= 2 * this.#limit + 1000) this.#cut();
  }

  take(): T[] {
    this.#cut();
    return [...this.#kept.values()];
  }

  #cut(): void {
    const sorted = [...this.#kept].sort(([, a], [, b]) => this.#order(a, b));
    this.#kept = new Map(sorted.slice(0, this.#limit));
  }
}
