/**
 * Plain `Promise.race / any / all` over durable operations: losers are given up.
 *
 * PROMISE-4 When a race is decided, its losers are given up, and with each the operation it waits for, unless
 *    other code waits for that. Combined promises have a stake of their own, so nested ones lose with them.
 *
 * Instances started before rule 1 (`instance.started.rules`) know direct losers only: an operation that is
 * itself in the list is cancelled, even if other code waits for it, and promises derived from one go on.
 */
import { privateSlot } from "../run/private-slot.ts";
import { byEngine, hold, isPromise, keep, release, type Stake, setStake } from "../run/promise-graph.ts";

/** The stake of an operation, for instances without rule 1. */
interface DirectStake {
  cancel(): void;
  /** Another promise won: as `cancel`, and a result that came meanwhile is unused. */
  lose(): void;
}

/** Registered by the code that made the promise. */
const directStakes = privateSlot<DirectStake>();

const directStakeOf = (entry: unknown): DirectStake | undefined =>
  typeof entry === "object" && entry !== null ? directStakes.get(entry) : undefined;

const handled = () => undefined;

export const cancellable = <T>(promise: Promise<T>, cancel: () => void, lose = cancel): Promise<T> =>
  staked(promise, { cancel, lose });

export function staked<T>(promise: Promise<T>, stake: DirectStake & Stake): Promise<T> {
  directStakes.set(promise, stake);
  setStake(promise, stake);
  return promise;
}

/** The same result, but no combinator will cancel it. */
export function shielded<T>(promise: Promise<T>): Promise<T> {
  return keep(promise.then((value) => value));
}

type Combine = (values: Iterable<unknown>) => Promise<unknown>;

/** How the running instance treats losers. */
export interface Losing {
  /** Rule 1. */
  readonly followsPromises: boolean;
}

/** `race`: the first to settle wins. `any`: the first to be fulfilled. */
export function withWinner(
  real: Combine,
  list: readonly unknown[],
  counts: "settled" | "fulfilled",
  losing: Losing,
): Promise<unknown> {
  let winner: { entry: unknown } | undefined;
  // Attached before the combinator's own handlers: the first to settle here is the first there.
  byEngine(() => {
    for (const entry of list) {
      const first = () => {
        winner ??= { entry };
      };
      Promise.resolve(entry).then(first, counts === "settled" ? first : handled);
    }
  });
  const entries = new Entries(list, losing);
  const end = () => entries.lose((entry) => entry !== winner?.entry);
  return combined(real, entries, end, end);
}

/** `all`: when one fails, the others have lost. */
export function withAll(real: Combine, list: readonly unknown[], losing: Losing): Promise<unknown> {
  const entries = new Entries(list, losing);
  return combined(real, entries, handled, () => entries.cancel());
}

/** `allSettled`: no promise loses, unless the combination itself does. */
export function withoutLosers(real: Combine, list: readonly unknown[], losing: Losing): Promise<unknown> {
  return combined(real, new Entries(list, losing), handled, handled);
}

/** The promises that a combinator waits for. */
class Entries {
  readonly list: readonly unknown[];
  readonly #follows: boolean;
  #held = true;

  constructor(list: readonly unknown[], { followsPromises }: Losing) {
    this.list = list;
    this.#follows = followsPromises;
    if (followsPromises) for (const entry of list) if (isPromise(entry)) hold(entry);
  }

  lose(isLoser: (entry: unknown) => boolean): void {
    if (this.#follows) return this.#release(isLoser, "lose");
    for (const entry of this.list) if (isLoser(entry)) directStakeOf(entry)?.lose();
  }

  cancel(): void {
    if (this.#follows) return this.#release(() => true, "lose");
    for (const entry of this.list) directStakeOf(entry)?.cancel();
  }

  withhold(): void {
    this.#release(() => true, "withhold");
  }

  resume(): void {
    if (this.#held) return;
    this.#held = true;
    for (const entry of this.list) if (isPromise(entry)) hold(entry);
  }

  #release(isLoser: (entry: unknown) => boolean, how: "lose" | "withhold"): void {
    if (!this.#held) return;
    this.#held = false;
    for (const entry of this.list) if (isPromise(entry) && isLoser(entry)) release(entry, how);
  }
}

function combined(
  real: Combine,
  entries: Entries,
  onValue: () => void,
  onError: () => void,
): Promise<unknown> {
  const settled = byEngine(() => {
    const outcome = real(entries.list).then(
      (value) => {
        onValue();
        return value;
      },
      (error) => {
        onError();
        throw error;
      },
    );
    // As with every durable promise: a rejection that no code awaits must not end the process.
    outcome.catch(handled);
    return outcome;
  });
  const cancel = () => entries.cancel();
  return staked(settled, {
    cancel,
    lose: cancel,
    withhold: () => entries.withhold(),
    resume: () => entries.resume(),
  });
}
