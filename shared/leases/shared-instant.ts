const perMs = 1000;

/** One point in time that two threads share: written whole, read whole. Zero means long ago. */
export class SharedInstant {
  readonly buffer: SharedArrayBuffer;
  readonly #cell: BigInt64Array;

  constructor(buffer = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#cell = new BigInt64Array(buffer);
  }

  /** Milliseconds on the process's monotonic clock. */
  get(): number {
    return Number(Atomics.load(this.#cell, 0)) / perMs;
  }

  set(ms: number): void {
    Atomics.store(this.#cell, 0, BigInt(Math.floor(ms * perMs)));
  }
}
