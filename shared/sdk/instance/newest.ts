/**
 * Keeps the newest items of a long iteration, one per id, with little more memory than the limit needs. An
 * item that changes during the iteration comes twice; the later one counts, even if it no longer matches.
 */
export class Newest<T> {
  readonly #limit: number;
  readonly #order: (a: T, b: T) => number;
  #kept = new Map<string, T>();

  /** `order` sorts the newest first and must depend only on fields that never change. */
  constructor(limit: number, order: (a: T, b: T) => number) {
    this.#limit = limit;
    this.#order = order;
  }

  /** Undefined: the item of this id no longer matches. */
  put(id: string, item: T | undefined): void {
    if (item === undefined) {
      this.#kept.delete(id);
      return;
    }
    this.#kept.set(id, item);
    if (this.#kept.size >= 2 * this.#limit + 1000) this.#cut();
  }

  /** The last item that still fits the limit; undefined as long as there are fewer. */
  oldest(): T | undefined {
    if (this.#kept.size < this.#limit) return undefined;
    this.#cut();
    return [...this.#kept.values()].at(-1);
  }

  sorted(): T[] {
    this.#cut();
    return [...this.#kept.values()];
  }

  #cut(): void {
    const sorted = [...this.#kept].sort(([, a], [, b]) => this.#order(a, b));
    this.#kept = new Map(sorted.slice(0, this.#limit));
  }
}
