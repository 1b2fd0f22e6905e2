import type { Clock, Timer } from "../../../../shared/runtime/index.ts";

export interface HeartbeatOptions {
  /** Time before the first ping. */
  initialDelayMs: number;
  intervalMs: number;
  /** A ping without an answer for this long counts as missed. */
  timeoutMs: number;
  /** After this many missed pings in a row the host counts as hung. */
  maxMissed: number;
}

/**
 * Sends one ping at a time: a host that computes without a pause answers late, and is hung only after missing
 * several.
 */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #options: HeartbeatOptions;
  readonly #ping: (n: number) => void;
  readonly #onHung: (silentMs: number) => void;
  #timer: Timer | undefined;
  #n = 0;
  #missed = 0;
  #answeredAt: number;
  /** When the oldest unanswered ping was sent. */
  #askedAt: number | undefined;
  #stopped = false;

  constructor(
    clock: Clock,
    options: HeartbeatOptions,
    ping: (n: number) => void,
    onHung: (silentMs: number) => void,
  ) {
    this.#clock = clock;
    this.#options = options;
    this.#ping = ping;
    this.#onHung = onHung;
    this.#answeredAt = clock.monotonic();
    this.#timer = clock.after(options.initialDelayMs, () => this.#send());
  }

  /** Any pong is a sign of life, a late one too. */
  pong(): void {
    if (this.#stopped) return;
    this.#missed = 0;
    this.#askedAt = undefined;
    this.#answeredAt = this.#clock.monotonic();
    this.#next();
  }

  /** How long the host has left pings unanswered; 0 while it answers. */
  unansweredMs(): number {
    return this.#askedAt === undefined ? 0 : this.#clock.monotonic() - this.#askedAt;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #next(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(this.#options.intervalMs, () => this.#send());
  }

  #send(): void {
    this.#askedAt ??= this.#clock.monotonic();
    this.#ping(++this.#n);
    this.#timer = this.#clock.after(this.#options.timeoutMs, () => {
      if (++this.#missed < this.#options.maxMissed) return this.#send();
      this.stop();
      this.#onHung(this.#clock.monotonic() - this.#answeredAt);
    });
  }
}
