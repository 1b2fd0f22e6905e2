/**
 * A Map that takes memory only while it has entries. An empty Map is 180 bytes, and every waiting instance
 * would have a dozen of them. Unlike with a Map, an iteration does not see entries added after the last one
 * was deleted.
 */
export class SparseMap<K, V> {
  #entries: Map<K, V> | undefined;

  get size(): number {
    return this.#entries?.size ?? 0;
  }

  get(key: K): V | undefined {
    return this.#entries?.get(key);
  }

  has(key: K): boolean {
    return this.#entries?.has(key) ?? false;
  }

  set(key: K, value: V): this {
    this.#entries ??= new Map();
    this.#entries.set(key, value);
    return this;
  }

  delete(key: K): boolean {
    const deleted = this.#entries?.delete(key) ?? false;
    if (this.#entries?.size === 0) this.#entries = undefined;
    return deleted;
  }

  clear(): void {
    this.#entries = undefined;
  }

  keys(): IterableIterator<K> {
    return this.#all.keys();
  }

  values(): IterableIterator<V> {
    return this.#all.values();
  }

  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.#all.entries();
  }

  get #all(): Map<K, V> {
    return this.#entries ?? (nothing as Map<K, V>);
  }
}

const nothing: Map<unknown, unknown> = new Map();
