import type { Random } from "./random.ts";

export interface Backoff {
  initialMs: number;
  maxMs: number;
  factor: number;
}

/** Delay before the given attempt's successor (attempt 1 failed → first delay). No jitter: history records it. */
export function backoffMs({ initialMs, maxMs, factor }: Backoff, failedAttempt: number): number {
  return Math.min(maxMs, Math.round(initialMs * factor ** (failedAttempt - 1)));
}

/** Between half and all of `ms`, so that many who failed together do not come back together. */
export const jittered = (ms: number, random: Random): number => Math.round(ms / 2 + (random.next() * ms) / 2);
