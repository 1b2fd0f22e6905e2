/** Time as an argument. Wall time dates things; only the monotonic clock measures (F31). */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, epoch milliseconds. */
  now(): number;
  /** Milliseconds from an arbitrary origin; never steps. */
  monotonic(): number;
  /** Runs `fn` once after `ms`. Does not keep the process alive. */
  after(ms: number, fn: () => void): Timer;
}

// Read before anything replaces the globals: orchestration code sees a deterministic Date, the engine never
// does.
const realNow = Date.now;
const realSetTimeout = setTimeout;
const realClearTimeout = clearTimeout;
const longestTimeout = 2_147_483_647;

export const systemClock: Clock = {
  now: () => realNow(),
  monotonic: () => performance.now(),
  after(ms, fn) {
    let handle: NodeJS.Timeout;
    const arm = (left: number) => {
      const wait = Math.min(Math.max(left, 0), longestTimeout);
      handle = realSetTimeout(() => (left > longestTimeout ? arm(left - longestTimeout) : fn()), wait);
      handle.unref();
    };
    arm(ms);
    return { cancel: () => realClearTimeout(handle) };
  },
};

/** Resolves after `ms`, or at once when the signal aborts; the result says which. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<"elapsed" | "aborted"> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve("aborted");
    const onAbort = () => {
      timer.cancel();
      resolve("aborted");
    };
    const timer = clock.after(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve("elapsed");
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Keeps the process or thread alive until `work` settles: timers of the clock do not. */
export async function keepingAlive<T>(work: Promise<T>): Promise<T> {
  const alive = setInterval(() => undefined, longestTimeout);
  try {
    return await work;
  } finally {
    clearInterval(alive);
  }
}
