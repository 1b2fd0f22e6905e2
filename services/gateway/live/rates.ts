/** Counts events of the last minutes, in slots of a few seconds. */
export interface RatePoint {
  at: number;
  started: number;
  completed: number;
  failed: number;
  lost: number;
}

export type Counted = Exclude<keyof RatePoint, "at">;

const slotMs = 5_000;
const slots = 60;
export const rateWindowMs = slotMs * slots;

export class Rates {
  readonly #points: RatePoint[] = [];

  /** Events older than the window are ignored. */
  add(what: Counted, at: number, now: number): void {
    if (at <= now - rateWindowMs || at > now + slotMs) return;
    const slot = Math.floor(at / slotMs) * slotMs;
    let point = this.#points.find((known) => known.at === slot);
    if (!point) {
      point = { at: slot, started: 0, completed: 0, failed: 0, lost: 0 };
      this.#points.push(point);
      this.#points.sort((a, b) => a.at - b.at);
    }
    point[what]++;
    while (this.#points[0] && this.#points[0].at <= now - rateWindowMs) this.#points.shift();
  }

  /** One point per slot, oldest first, empty slots included. */
  series(now: number): RatePoint[] {
    const last = Math.floor(now / slotMs) * slotMs;
    const known = new Map(this.#points.map((point) => [point.at, point]));
    return Array.from({ length: slots }, (_, index) => {
      const at = last - (slots - 1 - index) * slotMs;
      return known.get(at) ?? { at, started: 0, completed: 0, failed: 0, lost: 0 };
    });
  }

  lastMinute(what: Counted, now: number): number {
    return this.#points
      .filter((point) => point.at > now - 60_000)
      .reduce((sum, point) => sum + point[what], 0);
  }
}
