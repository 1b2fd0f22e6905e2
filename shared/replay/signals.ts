/** Signals by name, first in first out, whoever comes first: the signal or the one that waits. */
interface Waiter {
  resolve(payload: unknown): void;
}

export class Signals {
  readonly #unread = new Map<string, unknown[]>();
  readonly #waiters = new Map<string, Waiter[]>();

  arrive(name: string, payload: unknown): void {
    const waiter = this.#waiters.get(name)?.shift();
    if (waiter) return waiter.resolve(payload);
    const unread = this.#unread.get(name);
    if (unread) unread.push(payload);
    else this.#unread.set(name, [payload]);
  }

  /** Takes a waiting signal at once, or queues up for the next. Returns how to leave the queue. */
  wait(name: string, waiter: Waiter): () => void {
    const unread = this.#unread.get(name);
    if (unread && unread.length > 0) {
      waiter.resolve(unread.shift());
      return () => undefined;
    }
    const waiters = this.#waiters.get(name) ?? [];
    this.#waiters.set(name, waiters);
    waiters.push(waiter);
    return () => {
      const at = waiters.indexOf(waiter);
      if (at >= 0) waiters.splice(at, 1);
    };
  }

  awaited(): boolean {
    for (const waiters of this.#waiters.values()) if (waiters.length > 0) return true;
    return false;
  }

  /** What nobody took, for the next execution. */
  unread(): { name: string; payload: unknown }[] {
    return [...this.#unread].flatMap(([name, payloads]) => payloads.map((payload) => ({ name, payload })));
  }
}
