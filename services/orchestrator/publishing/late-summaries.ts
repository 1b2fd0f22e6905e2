/**
 * Postpones first summaries for a moment: most instances with work on the lane end before a person could have
 * read that they run, and a summary is a durable write. The instance's anchor stands for a postponed summary
 * (LANE-1): the summary is published before the anchor is acknowledged, and a successor that finds an anchor
 * in the history publishes it too.
 */
import type { Clock, Timer } from "../../../shared/runtime/index.ts";

/** As often as the dashboard redraws: a person sees no difference. */
const patienceMs = 250;

interface LateSummary {
  /** Called when the instance's summary has waited long enough. */
  showNow(): void;
}

export class LateSummaries {
  readonly #clock: Clock;
  /** Instances with a postponed summary and since when, oldest first. */
  readonly #waiting = new Map<LateSummary, number>();
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(instance: LateSummary): void {
    if (this.#waiting.has(instance)) return;
    this.#waiting.set(instance, this.#clock.monotonic());
    this.#timer ??= this.#clock.after(patienceMs, () => this.#look());
  }

  withdraw(instance: LateSummary): void {
    this.#waiting.delete(instance);
  }

  /** One timer serves all instances. */
  #look(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (const [instance, since] of this.#waiting) {
      const leftMs = since + patienceMs - now;
      if (leftMs > 0) {
        this.#timer = this.#clock.after(leftMs, () => this.#look());
        return;
      }
      this.#waiting.delete(instance);
      instance.showNow();
    }
  }
}
