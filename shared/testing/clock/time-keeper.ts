/**
 * Lets virtual time pass while a test waits, and only then. Stretches in which nobody has anything to do are skipped;
 * while code of the user's own runs, time passes as on the wall, so that what really takes a moment gets it.
 */
import { longestUpkeepMs, type SimulatedClock, settle } from "./simulated-clock.ts";

export interface TimeKeeperOptions {
  clock: SimulatedClock;
  /** Pieces of the user's code that run now, other than those that wait for this clock. */
  busy(): number;
  /** Grows with whatever an instance records. */
  progress(): number;
  /** Says why nothing will happen any more. */
  stuck(): Promise<Error>;
}

/** Whoever measures something in seconds has noticed by then what there is to notice. */
const horizonMs = longestUpkeepMs + 1_000;
/** Real time a skip gives to the user's code that runs, before it goes on without it. */
const graceMs = 100;
/** So many dates in a row on which nothing is recorded: what is awaited will not come. */
const patienceDates = 200;

export class TimeKeeper {
  readonly #options: TimeKeeperOptions;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: TimeKeeperOptions) {
    this.#options = options;
  }

  /** Awaits while time passes. Rejects when nothing is left that could bring it about. */
  async wait<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const end = () => {
      done = true;
    };
    work.then(end, end);
    const { clock, progress } = this.#options;
    let seen = progress();
    let since = clock.monotonic();
    let emptyDates = 0;
    while (!done) {
      await this.#alone(async () => {
        await settle();
        if (done || (await this.#letCodeRun())) return;
        if (progress() !== seen) {
          seen = progress();
          since = clock.monotonic();
          emptyDates = 0;
        }
        if (clock.monotonic() - since < horizonMs) return clock.advance(clock.nextInMs ?? horizonMs);
        const dated = clock.nextDatedInMs;
        if (dated === undefined || ++emptyDates > patienceDates) return this.#giveUp();
        clock.jump(dated);
        since = clock.monotonic();
        await clock.advance(0);
      });
    }
    return work;
  }

  /** Lets so much time pass, at once. */
  skip(ms: number): Promise<void> {
    return this.#alone(async () => {
      const { clock, busy } = this.#options;
      let left = ms;
      await settle();
      for (const until = performance.now() + graceMs; busy() > 0 && performance.now() < until; )
        await realMoment();
      for (;;) {
        const near = Math.min(left, horizonMs);
        await clock.advance(near);
        left -= near;
        if (left <= 0) break;
        const jump = Math.min(left, clock.nextDatedInMs ?? left);
        clock.jump(jump);
        left -= jump;
      }
      await clock.advance(0);
    });
  }

  async #giveUp(): Promise<void> {
    throw await this.#options.stuck();
  }

  async #letCodeRun(): Promise<boolean> {
    const { clock, busy } = this.#options;
    if (busy() === 0) return false;
    const before = performance.now();
    await realMoment();
    if (busy() > 0) await clock.advance(performance.now() - before);
    return true;
  }

  /** One at a time: two that move the same clock would each go too far. */
  #alone<T>(act: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(act);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }
}

const realSetTimeout = setTimeout;
const realMoment = (): Promise<void> => new Promise((resolve) => realSetTimeout(resolve, 1));
