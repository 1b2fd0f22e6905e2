/**
 * The time of a test on a real server: it passes at the real pace, and its calendar can be moved ahead. Dated
 * timers move with the calendar; times that members measure in seconds (leases, renewals, retries) do not.
 */
import { type Clock, systemClock, type Timer } from "../../runtime/index.ts";
import { longestUpkeepMs, type SkippingClock, type TimerKind } from "../clock/simulated-clock.ts";

interface Dated {
  /** On the monotonic clock. */
  at: number;
  fn: () => void;
  timer: Timer;
}

export class CalendarClock implements SkippingClock {
  readonly #real: Clock;
  readonly #dated = new Set<Dated>();
  /** From this real time on the calendar is ahead by this much; in order. */
  readonly #steps: { from: number; aheadMs: number }[];

  constructor(startsAt: number | undefined, real: Clock = systemClock) {
    this.#real = real;
    const aheadMs = startsAt === undefined ? 0 : startsAt - real.now();
    this.#steps = [{ from: Number.NEGATIVE_INFINITY, aheadMs }];
  }

  get aheadMs(): number {
    return this.#steps.at(-1)?.aheadMs ?? 0;
  }

  now(): number {
    return this.#real.now() + this.aheadMs;
  }

  monotonic(): number {
    return this.#real.monotonic();
  }

  /** Converts a time of the server's clock to the test's calendar. */
  dated(realAt: number): number {
    return realAt + (this.#steps.findLast(({ from }) => from <= realAt)?.aheadMs ?? 0);
  }

  after(ms: number, fn: () => void, kind: TimerKind = ms > longestUpkeepMs ? "dated" : "upkeep"): Timer {
    if (kind === "upkeep") return this.#real.after(ms, fn);
    const dated: Dated = { at: this.monotonic() + ms, fn, timer: { cancel: () => undefined } };
    this.#dated.add(dated);
    this.#arm(dated);
    return {
      cancel: () => {
        this.#dated.delete(dated);
        dated.timer.cancel();
      },
    };
  }

  /** Milliseconds until the next dated timer is due. */
  get nextDatedInMs(): number | undefined {
    if (this.#dated.size === 0) return undefined;
    return Math.max(0, Math.min(...[...this.#dated].map(({ at }) => at)) - this.monotonic());
  }

  jump(ms: number): void {
    this.#steps.push({ from: this.#real.now(), aheadMs: this.aheadMs + ms });
    for (const dated of this.#dated) {
      dated.at -= ms;
      dated.timer.cancel();
      this.#arm(dated);
    }
  }

  #arm(dated: Dated): void {
    dated.timer = this.#real.after(Math.max(0, dated.at - this.monotonic()), () => {
      this.#dated.delete(dated);
      dated.fn();
    });
  }
}
