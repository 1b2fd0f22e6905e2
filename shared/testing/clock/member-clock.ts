/**
 * The clock of one member: it may be wrong, jump, and stand still for its owner while the process sleeps. What measures
 * (monotonic) is right, as it is on a real machine (F31), and goes on while the process sleeps.
 */
import type { Timer } from "../../runtime/index.ts";
import type { SkippingClock, TimerKind } from "./simulated-clock.ts";

export class MemberClock implements SkippingClock {
  readonly #real: SkippingClock;
  /** Due while the process slept, in order; absent while it is awake. */
  #overdue: (() => void)[] | undefined;
  /** How far its wall clock is ahead of the server's. */
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
