/**
 * Virtual time. Time stands still until a test moves it; timers fire in the order they are due, and
 * everything a timer causes is finished before the next one fires, so a run depends on its seed alone.
 */
import type { Clock, Timer } from "../../runtime/index.ts";

interface Due {
  at: number;
  order: number;
  kind: TimerKind;
  run: () => void;
}

/**
 * `dated`: set by the application for a time far ahead; due by the calendar. `upkeep`: what members do every
 * few seconds to stay alive; a skip over a stretch in which nothing else happens leaves these out.
 */
export type TimerKind = "dated" | "upkeep";

/** A clock whose timers may state their kind. Without a kind, a timer longer than any upkeep is dated. */
export interface SkippingClock extends Clock {
  after(ms: number, fn: () => void, kind?: TimerKind): Timer;
}

/** Every periodic timer of a member is at most this long. */
export const longestUpkeepMs = 30_000;

export class SimulatedClock implements SkippingClock {
  readonly #startedAt: number;
  readonly #due: Due[] = [];
  #elapsed = 0;
  #skipped = 0;
  #order = 0;

  constructor(startedAt = 1_700_000_000_000) {
    this.#startedAt = startedAt;
  }

  now(): number {
    return Math.floor(this.#startedAt + this.#skipped + this.#elapsed);
  }

  monotonic(): number {
    return this.#elapsed;
  }

  after(ms: number, fn: () => void, kind: TimerKind = ms > longestUpkeepMs ? "dated" : "upkeep"): Timer {
    const due: Due = { at: this.#elapsed + Math.max(0, ms), order: this.#order++, kind, run: fn };
    this.#insert(due);
    return { cancel: () => this.#remove(due) };
  }

  /** Number of waiting timers. */
  get pending(): number {
    return this.#due.length;
  }

  /** Milliseconds until the next timer is due. */
  get nextInMs(): number | undefined {
    const next = this.#due[0];
    return next && next.at - this.#elapsed;
  }

  /** Milliseconds until the next dated timer is due. */
  get nextDatedInMs(): number | undefined {
    const next = this.#due.find(({ kind }) => kind === "dated");
    return next && next.at - this.#elapsed;
  }

  /**
   * Skips a stretch without dated timers: the calendar moves on while the monotonic clock stands still, so
   * every lease counts as renewed in time.
   */
  jump(ms: number): void {
    this.#skipped += ms;
    for (const due of this.#due) if (due.kind === "dated") due.at = Math.max(this.#elapsed, due.at - ms);
    this.#due.sort((a, b) => a.at - b.at || a.order - b.order);
  }

  /** Lets this much time pass. */
  async advance(ms: number): Promise<void> {
    const until = this.#elapsed + ms;
    await settle();
    while (this.#due[0] && this.#due[0].at <= until) await this.#fire();
    this.#elapsed = until;
  }

  /** Lets time pass until the fact holds. Throws if it does not within the limit. */
  async runUntil(fact: () => boolean, limitMs = 600_000): Promise<void> {
    const until = this.#elapsed + limitMs;
    await settle();
    while (!fact()) {
      const next = this.#due[0];
      if (!next || next.at > until) {
        throw new Error(
          `not so within ${limitMs} ms of virtual time (${next ? "time is over" : "nothing left to happen"})`,
        );
      }
      await this.#fire();
    }
  }

  /** Awaits the work while time passes by itself. */
  async run<T>(work: Promise<T>, limitMs = 600_000): Promise<T> {
    let done = false;
    const end = () => {
      done = true;
    };
    work.then(end, end);
    await this.runUntil(() => done, limitMs);
    return work;
  }

  async #fire(): Promise<void> {
    const next = this.#due.shift();
    if (!next) return;
    this.#elapsed = Math.max(this.#elapsed, next.at);
    next.run();
    await settle();
  }

  #insert(due: Due): void {
    let low = 0;
    let high = this.#due.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#due[middle];
      if (other && (other.at < due.at || (other.at === due.at && other.order < due.order))) low = middle + 1;
      else high = middle;
    }
    this.#due.splice(low, 0, due);
  }

  #remove(due: Due): void {
    const index = this.#due.indexOf(due);
    if (index >= 0) this.#due.splice(index, 1);
  }
}

/** The microtask queue is empty when an immediate runs. */
const realImmediate = setImmediate;
export const settle = (): Promise<void> => new Promise((resolve) => realImmediate(() => resolve()));

/** Lets time run by itself, as fast as the work allows, until stopped. For tests that just await. */
export function freeRunning(clock: SimulatedClock): { stop(): void } {
  let running = true;
  const turn = async () => {
    while (running) {
      const next = clock.nextInMs;
      await clock.advance(next ?? 0);
    }
  };
  void turn();
  return {
    stop: () => {
      running = false;
    },
  };
}
