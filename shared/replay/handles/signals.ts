/** Signals by name, first in first out, whoever comes first: the signal or the one that waits. */
import type { Payload } from "../../../schemas/index.ts";
import { SparseMap } from "../../runtime/index.ts";

export interface Signal {
  readonly payload: Payload;
  readonly value: unknown;
}

export interface Waiter {
  take(signal: Signal): void;
}

export class Signals {
  readonly #unread = new SparseMap<string, Signal[]>();
  readonly #waiters = new SparseMap<string, Waiter[]>();

  arrive(name: string, signal: Signal): void {
    const waiter = this.#waiters.get(name)?.shift();
    if (waiter) waiter.take(signal);
    else this.#unreadOf(name).push(signal);
  }

  /** Gives a waiting signal at once, or queues up for the next. */
  wait(name: string, waiter: Waiter): void {
    const unread = this.#unread.get(name)?.shift();
    if (unread) return waiter.take(unread);
    const waiters = this.#waiters.get(name);
    if (waiters) waiters.push(waiter);
    else this.#waiters.set(name, [waiter]);
  }

  leave(name: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(name);
    const at = waiters?.indexOf(waiter) ?? -1;
    if (at >= 0) waiters?.splice(at, 1);
  }

  /** Whoever took it has no use for it: it is the next one's. */
  giveBack(name: string, signal: Signal): void {
    const waiter = this.#waiters.get(name)?.shift();
    if (waiter) waiter.take(signal);
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
