/**
 * Events sent to a session, in order, for the call that listens. Events that arrive between two calls are
 * kept.
 */
export interface SessionEvent {
  name: string;
  payload: unknown;
}

/** With more events than this no call is listening: the oldest are dropped. */
const most = 10_000;

export class EventQueue {
  readonly #waiting: SessionEvent[] = [];
  /** Absent while no code listens. */
  #wake: Set<() => void> | undefined;
  #closed = false;

  push(event: SessionEvent): void {
    if (this.#closed) return;
    this.#waiting.push(event);
    if (this.#waiting.length > most) this.#waiting.shift();
    this.#wakeAll();
  }

  close(): void {
    this.#closed = true;
    this.#waiting.length = 0;
    this.#wakeAll();
  }

  /** Ends when the session ends or the run that listens is aborted. */
  listen(signal: AbortSignal): AsyncIterable<SessionEvent> {
    const next = () => this.#next(signal);
    return {
      [Symbol.asyncIterator]: () => ({
        next,
        return: () => Promise.resolve({ done: true as const, value: undefined }),
      }),
    };
  }

  async #next(signal: AbortSignal): Promise<IteratorResult<SessionEvent>> {
    for (;;) {
      const event = this.#waiting.shift();
      if (event) return { done: false, value: event };
      if (this.#closed || signal.aborted) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#wake?.delete(wake);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        this.#wake ??= new Set();
        this.#wake.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    }
  }

  #wakeAll(): void {
    for (const wake of [...(this.#wake ?? [])]) wake();
  }
}
