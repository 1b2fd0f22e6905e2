/**
 * Plain `Promise.race / any / all` over durable operations: what has lost is cancelled. Combined promises have a stake
 * of their own, so that what is nested loses with them.
 */

export interface Stake {
  /** Calls off what is still open. */
  cancel(): void;
  /** Another one won: as `cancel`, and what it got meanwhile was for nobody. */
  lose(): void;
}

/** Registered by whoever made the promise. */
const stakes = new WeakMap<object, Stake>();

const stakeOf = (entry: unknown): Stake | undefined =>
  typeof entry === "object" && entry !== null ? stakes.get(entry) : undefined;

const handled = () => undefined;

export const cancellable = <T>(promise: Promise<T>, cancel: () => void, lose = cancel): Promise<T> =>
  staked(promise, { cancel, lose });

export function staked<T>(promise: Promise<T>, stake: Stake): Promise<T> {
  stakes.set(promise, stake);
  return promise;
}

/** The same result, but no combinator will cancel it. */
export function shielded<T>(promise: Promise<T>): Promise<T> {
  return promise.then((value) => value);
}

type Combine = (values: Iterable<unknown>) => Promise<unknown>;

/** `race`: the first to settle wins. `any`: the first to be fulfilled. */
export function withWinner(real: Combine, list: readonly unknown[], counts: "settled" | "fulfilled") {
  let winner: { entry: unknown } | undefined;
  // Attached before the combinator's own: who is first here is first there.
  for (const entry of list) {
    const first = () => {
      winner ??= { entry };
    };
    Promise.resolve(entry).then(first, counts === "settled" ? first : handled);
  }
  const end = () => {
    for (const entry of list) if (entry !== winner?.entry) stakeOf(entry)?.lose();
  };
  return combined(real(list), list, end, end);
}

/** `all`: when one fails the others have lost. */
export function withAll(real: Combine, list: readonly unknown[]): Promise<unknown> {
  return combined(real(list), list, handled, () => cancelAll(list));
}

/** `allSettled`: nobody loses, unless it is part of something that does. */
export function withoutLosers(real: Combine, list: readonly unknown[]): Promise<unknown> {
  return combined(real(list), list, handled, handled);
}

function combined(
  outcome: Promise<unknown>,
  list: readonly unknown[],
  onValue: () => void,
  onError: () => void,
): Promise<unknown> {
  const settled = outcome.then(
    (value) => {
      onValue();
      return value;
    },
    (error) => {
      onError();
      throw error;
    },
  );
  // As with every durable promise: one nobody looks at must not end the process.
  settled.catch(handled);
  return cancellable(settled, () => cancelAll(list));
}

function cancelAll(list: readonly unknown[]): void {
  for (const entry of list) stakeOf(entry)?.cancel();
}
