/** How often something happened in the last minutes, for `top` and the dashboard. */
interface RatePoint {
  at: number;
  started: number;
  completed: number;
  failed: number;
  lost: number;
}

export type Counted = Exclude<keyof RatePoint, "at">;

const slotMs = 100;
const pointMs = 5_000;
const points = 60;
const windowMs = pointMs * points;

export class Rates {
  /** Counts by the beginning of their slot. */
  readonly #slots = new Map<number, RatePoint>();

  /** Events may be added in any order; those older than the window are ignored. */
  add(what: Counted, at: number, now: number): void {
    if (at <= now - windowMs || at > now + pointMs) return;
    const start = Math.floor(at / slotMs) * slotMs;
    const slot = this.#slots.get(start);
    if (slot) {
      slot[what]++;
      return;
    }
    this.#slots.set(start, { ...empty(start), [what]: 1 });
    for (const old of this.#slots.keys()) if (old <= now - windowMs) this.#slots.delete(old);
  }

  /** One point per five seconds, oldest first, empty ones included. */
  series(now: number): RatePoint[] {
    const first = Math.floor(now / pointMs) * pointMs - (points - 1) * pointMs;
    const series = Array.from({ length: points }, (_, index) => empty(first + index * pointMs));
    for (const slot of this.#slots.values()) {
      const point = series[Math.floor((slot.at - first) / pointMs)];
      if (!point) continue;
      for (const what of counted) point[what] += slot[what];
    }
    return series;
  }

  count(what: Counted, now: number, withinMs: number): number {
    let sum = 0;
    for (const slot of this.#slots.values()) if (slot.at > now - withinMs) sum += slot[what];
    return sum;
  }

  lastMinute(what: Counted, now: number): number {
    return this.count(what, now, 60_000);
  }

  /**
   * Over the last ten seconds. If the watch began later (`since`), over the time watched, at least a second.
   */
  perSecond(what: Counted, now: number, since: number): number {
    const seconds = Math.min(10_000, Math.max(1000, now - since)) / 1000;
    return Math.round((this.count(what, now, 10_000) / seconds) * 10) / 10;
  }
}

const counted = ["started", "completed", "failed", "lost"] as const satisfies Counted[];

const empty = (at: number): RatePoint => ({ at, started: 0, completed: 0, failed: 0, lost: 0 });
