import type { Clock, Timer } from "./clock.ts";

/**
 * One contract for every long-lived part: start means ready, stop means finished, a second call has no
 * effect.
 */
export interface Service {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts parts that do not need each other. If one fails, the others are awaited before the error is
 * thrown: none is still starting when the caller stops them.
 */
export async function startAll(parts: readonly (Pick<Service, "start"> | undefined)[]): Promise<void> {
  const outcomes = await Promise.allSettled(parts.map((part) => part?.start()));
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}

/** Makes an async function run once, however often it is called. */
export function once<T>(act: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => (running ??= act());
}

/** Waits for the work to settle, at most `ms`. */
export async function within(ms: number, work: Promise<unknown>, clock: Clock): Promise<"settled" | "late"> {
  let timer: Timer | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = clock.after(ms, () => resolve("late"));
  });
  const settled = work.then(
    () => "settled" as const,
    () => "settled" as const,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    timer?.cancel();
  }
}
