import type { Random } from "./random.ts";

export interface Backoff {
  initialMs: number;
  maxMs: number;
  factor: number;
}

/**
 * Delay after the given failed attempt (attempt 1 failed → first delay). No jitter, because the history
 * records it.
 */
export function backoffMs({ initialMs, maxMs, factor }: Backoff, failedAttempt: number): number {
  return Math.min(maxMs, Math.round(initialMs * factor ** (failedAttempt - 1)));
}

/** Between half and all of `ms`, so that many processes that failed together do not retry together. */
export const jittered = (ms: number, random: Random): number => Math.round(ms / 2 + (random.next() * ms) / 2);
