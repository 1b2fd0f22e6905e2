/** Marks which instance's turn is running and since when, in memory that two threads share. */
const idBytes = 128;
export const turnMarkBytes = 8 + 4 + idBytes + 4;

export class TurnMark {
  readonly #since: Float64Array;
  readonly #length: Int32Array;
  readonly #id: Uint8Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#since = new Float64Array(buffer, 0, 1);
    this.#length = new Int32Array(buffer, 8, 1);
    this.#id = new Uint8Array(buffer, 12, idBytes);
  }

  /** Ids are ASCII tokens of at most 128 characters. */
  set(instanceId: string | undefined, now: number): void {
    if (instanceId === undefined) {
      Atomics.store(this.#length, 0, 0);
      return;
    }
    for (let i = 0; i < instanceId.length; i++) this.#id[i] = instanceId.charCodeAt(i);
    this.#since[0] = now;
    Atomics.store(this.#length, 0, instanceId.length);
  }

  get(): { instanceId: string; since: number } | undefined {
    const length = Atomics.load(this.#length, 0);
    if (length === 0) return undefined;
    return { instanceId: String.fromCharCode(...this.#id.slice(0, length)), since: this.#since[0] ?? 0 };
  }
}
