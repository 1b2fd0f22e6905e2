/**
 * Signals by name, first in first out. A signal may come before or after the code waits for it.
 *
 * SIGNAL-1 A signal goes to the oldest waiter of its name whose result can still be used. One signal is given
 *    out at a time, and the code runs as far as it can before the next one is: a waiter that loses a race because
 *    of the first signal does not get the second.
 *
 * In instances started before rule 1 a waiter gets a stored signal at once, and a loser gives its signal
 * back.
 */
import type { Payload } from "../../../../schemas/index.ts";
import { SparseMap } from "../../../runtime/index.ts";

export interface Signal {
  readonly payload: Payload;
  readonly value: unknown;
}

export interface Waiter {
  receive(signal: Signal): void;
}

interface Queued {
  readonly waiter: Waiter;
  readonly order: number;
}

export class Signals {
  readonly #oneAtATime: boolean;
  readonly #unread = new SparseMap<string, Signal[]>();
  readonly #waiters = new SparseMap<string, Queued[]>();
  #order = 0;

  constructor(oneAtATime: boolean) {
    this.#oneAtATime = oneAtATime;
  }

  arrive(name: string, signal: Signal): void {
    const queued = this.#waiters.get(name)?.shift();
    if (queued) queued.waiter.receive(signal);
    else this.#unreadOf(name).push(signal);
  }

  /** Keeps the signal for a later waiter. */
  store(name: string, signal: Signal): void {
    this.#unreadOf(name).push(signal);
  }

  /** Queues up for the next signal; without rule 1 a stored signal is given at once. */
  wait(name: string, waiter: Waiter): void {
    const unread = this.#oneAtATime ? undefined : this.#unread.get(name)?.shift();
    if (unread) return waiter.receive(unread);
    const queued = { waiter, order: this.#order++ };
    const waiters = this.#waiters.get(name);
    if (waiters) waiters.push(queued);
    else this.#waiters.set(name, [queued]);
  }

  /**
   * Gives a stored signal to the waiter that has waited longest. Returns false if no waiter wants a stored
   * signal.
   */
  giveNext(): boolean {
    let oldest: { name: string; order: number } | undefined;
    for (const [name, signals] of this.#unread) {
      const order = signals.length > 0 ? this.#waiters.get(name)?.[0]?.order : undefined;
      if (order !== undefined && (!oldest || order < oldest.order)) oldest = { name, order };
    }
    const signal = oldest && this.#unread.get(oldest.name)?.shift();
    if (!oldest || !signal) return false;
    this.#waiters.get(oldest.name)?.shift()?.waiter.receive(signal);
    return true;
  }

  /** Takes all unread signals of the name at once. */
  popAll(name: string): Signal[] {
    return this.#unread.get(name)?.splice(0) ?? [];
  }

  leave(name: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(name);
    const at = waiters?.findIndex((queued) => queued.waiter === waiter) ?? -1;
    if (at >= 0) waiters?.splice(at, 1);
  }

  /** The waiter that took the signal cannot use it: the next waiter gets it. */
  giveBack(name: string, signal: Signal): void {
    const queued = this.#waiters.get(name)?.shift();
    if (queued) queued.waiter.receive(signal);
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

  /** Names of the signals that the code waits for. */
  awaitedNames(): string[] {
    return [...this.#waiters].flatMap(([name, waiters]) => (waiters.length > 0 ? [name] : [])).sort();
  }

  /** The unread signals, for the next execution. */
  unread(): { name: string; payload: Payload }[] {
    return [...this.#unread].flatMap(([name, signals]) => signals.map(({ payload }) => ({ name, payload })));
  }
}
