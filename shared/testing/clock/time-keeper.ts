/**
 * Lets virtual time pass while a test waits, and only then. Stretches in which no member has work are
 * skipped; while the user's own code runs, time passes at the real pace, so that code which takes a real
 * moment gets it.
 */
import { longestUpkeepMs, type SimulatedClock, settle } from "./simulated-clock.ts";

interface TimeKeeperOptions {
  clock: SimulatedClock;
  /** Number of running pieces of user code, except those that wait for this clock. */
  busy(): number;
  /** Grows with every record of an instance. */
  progress(): number;
  /** Returns the error that explains why nothing more will happen. */
  stuck(): Promise<Error>;
}

/** By then every member that measures in seconds has noticed what there is to notice. */
const horizonMs = longestUpkeepMs + 1_000;
/** Real time a skip gives to running user code before it continues without it. */
const graceMs = 100;
/** After this many dates in a row without any record, the awaited thing will not come. */
const patienceDates = 200;

export class TimeKeeper {
  readonly #options: TimeKeeperOptions;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: TimeKeeperOptions) {
    this.#options = options;
  }

  /** Awaits the work while time passes. Rejects when nothing is left that could complete it. */
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

  /** Lets this much time pass at once. */
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

  /** One caller at a time: two callers that move the same clock would each move it too far. */
  #alone<T>(act: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(act);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }
}

const realSetTimeout = setTimeout;
const realMoment = (): Promise<void> => new Promise((resolve) => realSetTimeout(resolve, 1));
