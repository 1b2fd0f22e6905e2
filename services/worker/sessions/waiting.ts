import type { SessionClaim, WorkerInfo } from "../../../schemas/index.ts";
import type { Clock, Timer } from "../../../shared/runtime/index.ts";

/** How soon a change of the fleet is noticed. */
const lookEveryMs = 50;
const most = 1000;
/** Looked at again for one change; the others come by their next delivery. */
const atOnce = 32;

/**
 * Claims nobody could take. They rest in the queue; when the fleet or our own room changes they are looked at again
 * at once (Q3). Forgetting one costs at most its rest, so the number is bounded.
 */
export class Waiting {
  readonly #clock: Clock;
  readonly #view: () => readonly WorkerInfo[] | undefined;
  readonly #again: (claim: SessionClaim) => void;
  readonly #claims = new Map<string, { claim: SessionClaim; until: number }>();
  #timer: Timer | undefined;
  #seen: readonly WorkerInfo[] | undefined;

  constructor(
    clock: Clock,
    view: () => readonly WorkerInfo[] | undefined,
    again: (claim: SessionClaim) => void,
  ) {
    this.#clock = clock;
    this.#view = view;
    this.#again = again;
  }

  add(key: string, claim: SessionClaim, restMs: number): void {
    if (this.#claims.size === 0) this.#seen = this.#view();
    if (this.#claims.size < most) this.#claims.set(key, { claim, until: this.#clock.monotonic() + restMs });
    this.#arm();
  }

  remove(key: string): void {
    this.#claims.delete(key);
  }

  /** Our own room changed. */
  changed(): void {
    for (const [key, { claim }] of [...this.#claims].slice(0, atOnce)) {
      this.#claims.delete(key);
      this.#again(claim);
    }
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#claims.clear();
  }

  #arm(): void {
    if (this.#timer || this.#claims.size === 0) return;
    this.#timer = this.#clock.after(lookEveryMs, () => {
      this.#timer = undefined;
      this.#look();
      this.#arm();
    });
  }

  #look(): void {
    const now = this.#clock.monotonic();
    for (const [key, { until }] of this.#claims) if (until <= now) this.#claims.delete(key);
    // The view makes a new list for every change.
    const view = this.#view();
    if (view === this.#seen) return;
    this.#seen = view;
    this.changed();
  }
}
