/**
 * The clock of one member: its wall clock may be wrong or jump, and its timers stand still while the process
 * sleeps. The monotonic clock is right, as on a real machine (F31), and continues while the process sleeps.
 */
import type { Timer } from "../../runtime/index.ts";
import type { SkippingClock, TimerKind } from "./simulated-clock.ts";

export class MemberClock implements SkippingClock {
  readonly #real: SkippingClock;
  /** Timers that became due while the process slept, in order; undefined while it is awake. */
  #overdue: (() => void)[] | undefined;
  /** How far the member's wall clock is ahead of the server's. */
  aheadMs: number;

  constructor(real: SkippingClock, aheadMs = 0) {
    this.#real = real;
    this.aheadMs = aheadMs;
  }

  now(): number {
    return this.#real.now() + this.aheadMs;
  }

  monotonic(): number {
    return this.#real.monotonic();
  }

  after(ms: number, fn: () => void, kind?: TimerKind): Timer {
    let cancelled = false;
    const due = () => {
      if (cancelled) return;
      if (this.#overdue) this.#overdue.push(due);
      else fn();
    };
    const timer = this.#real.after(ms, due, kind);
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  pause(): void {
    this.#overdue ??= [];
  }

  resume(): void {
    const overdue = this.#overdue;
    this.#overdue = undefined;
    for (const due of overdue ?? []) due();
  }
}
