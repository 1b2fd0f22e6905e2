/**
 * Latencies of the whole installation, from the pulses that services send every few seconds. A lost pulse
 * only makes the figures coarser.
 */
import { z } from "zod";
import type { Pulse, PulseTimes } from "../../../schemas/index.ts";
import type { Clock } from "../../../shared/runtime/index.ts";

export const Quantiles = z.strictObject({
  p50: z.number(),
  p95: z.number(),
  p99: z.number(),
  count: z.int(),
});
export type Quantiles = z.infer<typeof Quantiles>;

export interface LatencyView {
  scheduleToStart?: Quantiles;
  step?: Quantiles;
  call?: Quantiles;
}

type Kind = keyof LatencyView;
const windowMs = 60_000;

/** How often sessions of a type got their state by init, restore or rebuild since this gateway started. */
export const Starts = z.strictObject({
  type: z.string(),
  cold: z.int(),
  warm: z.int(),
  restored: z.int(),
});
export type Starts = z.infer<typeof Starts>;

export class Latencies {
  readonly #clock: Clock;
  readonly #starts = new Map<string, Starts>();
  #pulses: { at: number; times: Pulse["times"] }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(pulse: Pulse): void {
    this.#pulses.push({ at: this.#clock.monotonic(), times: pulse.times });
    for (const { type, start, n } of pulse.starts ?? []) {
      const known = this.#starts.get(type) ?? { type, cold: 0, warm: 0, restored: 0 };
      this.#starts.set(type, { ...known, [start]: known[start] + n });
    }
    this.#forget();
  }

  starts(): Starts[] {
    return [...this.#starts.values()];
  }

  view(): LatencyView {
    this.#forget();
    const view: LatencyView = {};
    for (const kind of ["scheduleToStart", "step", "call"] satisfies Kind[]) {
      const found = quantiles(this.#pulses.flatMap((pulse) => pulse.times[kind] ?? []));
      if (found) view[kind] = found;
    }
    return view;
  }

  #forget(): void {
    const since = this.#clock.monotonic() - windowMs;
    if (this.#pulses[0] && this.#pulses[0].at < since) {
      this.#pulses = this.#pulses.filter((pulse) => pulse.at >= since);
    }
  }
}

/** Counts per exponent bucket add up over processes; the quantile is the middle of its bucket (error below 10 %). */
export function quantiles(times: readonly PulseTimes[]): Quantiles | undefined {
  const buckets = new Map<number, number>();
  let count = 0;
  for (const { at, n } of times) {
    buckets.set(at, (buckets.get(at) ?? 0) + n);
    count += n;
  }
  if (count === 0) return undefined;
  const ordered = [...buckets].sort((a, b) => a[0] - b[0]);
  const quantile = (q: number): number => {
    let seen = 0;
    for (const [at, n] of ordered) {
      seen += n;
      if (seen >= q * count) return pulseMs(at);
    }
    return pulseMs(ordered.at(-1)?.[0] ?? 0);
  };
  return { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), count };
}

const perDoubling = 4;

/** The middle of a bucket (schemas/telemetry.ts). */
export const pulseMs = (bucket: number): number => Number((2 ** (bucket / perDoubling)).toPrecision(3));
