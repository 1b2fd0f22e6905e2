/** Statistics of a list of measured durations. */
export interface Spread {
  meanMs: number;
  p50Ms: number;
  p99Ms: number;
}

/** By the nearest-rank method. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

export const spread = (values: readonly number[]): Spread => ({
  meanMs: mean(values),
  p50Ms: percentile(values, 0.5),
  p99Ms: percentile(values, 0.99),
});

/** `{ p50Ms }` → `{ floorP50Ms }` */
export function named(prefix: string, figures: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [
      `${prefix}${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      value,
    ]),
  );
}

/** Returns the time between each stamp and the next. */
export const intervals = (stamps: readonly number[]): number[] =>
  stamps.slice(1).map((stamp, index) => stamp - (stamps[index] ?? stamp));

/** Runs `count` of them, at most `width` at a time. Returns the results in order. */
export async function inFlight<T>(
  count: number,
  width: number,
  run: (index: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const index = next++;
      results[index] = await run(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
  return results;
}
