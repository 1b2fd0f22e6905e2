/** Signals by name, first in first out, whoever comes first: the signal or the one that waits. */
import type { Payload } from "../../schemas/index.ts";
import { SparseMap } from "../runtime/index.ts";

export interface Signal {
  readonly payload: Payload;
  readonly value: unknown;
}

interface Waiter {
  resolve(signal: Signal): void;
}

export class Signals {
  readonly #unread = new SparseMap<string, Signal[]>();
  readonly #waiters = new SparseMap<string, Waiter[]>();

  arrive(name: string, signal: Signal): void {
    const waiter = this.#waiters.get(name)?.shift();
    if (waiter) waiter.resolve(signal);
    else this.#unreadOf(name).push(signal);
  }

  /** Takes a waiting signal at once, or queues up for the next. Returns how to leave the queue. */
  wait(name: string, waiter: Waiter): () => void {
    const unread = this.#unread.get(name)?.shift();
    if (unread) {
      waiter.resolve(unread);
      return () => undefined;
    }
    const waiters = this.#waiters.get(name);
    if (waiters) waiters.push(waiter);
    else this.#waiters.set(name, [waiter]);
    return () => {
      const others = this.#waiters.get(name);
      const at = others?.indexOf(waiter) ?? -1;
      if (at >= 0) others?.splice(at, 1);
    };
  }

  /** Whoever took it has no use for it: it is the next one's. */
  giveBack(name: string, signal: Signal): void {
    const waiter = this.#waiters.get(name)?.shift();
    if (waiter) waiter.resolve(signal);
    else this.#unreadOf(name).unshift(signal);
  }

  #unreadOf(name: string): Signal[] {
    const known = this.#unread.get(name);
    if (known) return known;
    const unread: Signal[] = [];
    this.#unread.set(name, unread);
    return unread;
  }

  awaited(): boolean {
    for (const waiters of this.#waiters.values()) if (waiters.length > 0) return true;
    return false;
  }

  /** What nobody took, for the next execution. */
  unread(): { name: string; payload: Payload }[] {
    return [...this.#unread].flatMap(([name, signals]) => signals.map(({ payload }) => ({ name, payload })));
  }
}
