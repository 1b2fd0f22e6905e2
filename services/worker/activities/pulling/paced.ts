import type { Clock, Timer } from "../../../../shared/runtime/index.ts";

/**
 * Acts soon after a request, at most once per interval and never twice at the same time. Requests during an
 * act cause one more act.
 */
export class Paced {
  readonly #clock: Clock;
  readonly #everyMs: number;
  /** Never rejects. */
  readonly #act: () => Promise<void>;
  #asked = false;
  #acting: Promise<void> | undefined;
  #timer: Timer | undefined;
  #actedAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(clock: Clock, everyMs: number, act: () => Promise<void>) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#act = act;
  }

  get acted(): boolean {
    return Number.isFinite(this.#actedAt);
  }

  ask(): void {
    if (this.#closed) return;
    this.#asked = true;
    if (this.#timer || this.#acting) return;
    const waitMs = this.#actedAt + this.#everyMs - this.#clock.monotonic();
    if (waitMs <= 0) this.#run();
    else this.#timer = this.#clock.after(waitMs, () => this.#run());
  }

  /** Stops acting; resolves when the act under way is over. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#acting;
  }

  #run(): void {
    this.#timer = undefined;
    this.#asked = false;
    this.#actedAt = this.#clock.monotonic();
    this.#acting = this.#act().finally(() => {
      this.#acting = undefined;
      if (this.#asked) this.ask();
    });
  }
}
