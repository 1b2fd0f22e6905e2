/** Plain `Promise.race / any / all` over durable operations: what has lost is cancelled. */

/** Cancels the operation behind a durable promise; registered by whoever made the promise. */
const cancels = new WeakMap<object, () => void>();

export function cancellable<T>(promise: Promise<T>, cancel: () => void): Promise<T> {
  cancels.set(promise, cancel);
  return promise;
}

/** The same result, but no combinator will cancel it. */
export function shielded<T>(promise: Promise<T>): Promise<T> {
  return promise.then((value) => value);
}

/** `outcome` is the combinator's own promise over `list`. Cancelling what has settled does nothing. */
export function losersCancelled(list: readonly unknown[], outcome: Promise<unknown>): Promise<unknown> {
  const cancelRest = () => {
    for (const entry of list) if (typeof entry === "object" && entry !== null) cancels.get(entry)?.();
  };
  const settled = outcome.then(
    (value) => {
      cancelRest();
      return value;
    },
    (error) => {
      cancelRest();
      throw error;
    },
  );
  return settled;
}
