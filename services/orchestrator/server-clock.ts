/**
 * The clock by which turns are dated: that of the server which fires the schedules, not that of this machine. An owner
 * whose own clock is an hour ahead would make every later sleep of its instances last an hour (F30): within a history
 * time never runs backwards.
 *
 * CLOCK-1 It is never ahead of the server, and never behind a message the server has dated: what a schedule was set for
 *    is due by this clock when its wake arrives.
 * CLOCK-2 Between two measurements it goes on by the monotonic clock: steps of this machine's wall clock do not matter.
 */
import type { Bus } from "../../shared/bus/index.ts";
import type { Clock, Runtime, Service, Timer } from "../../shared/runtime/index.ts";
import { once } from "../../shared/runtime/index.ts";

export interface ServerClockOptions {
  bus: Bus;
  /** The stream whose leader fires the schedules: it is asked for the time. */
  stream: string;
  runtime: Runtime;
}

const everyMs = 30_000;
/** Until it was measured for the first time, or anew after a reconnect to what may be another server. */
const soonMs = 1_000;

export class ServerClock implements Clock, Service {
  readonly #options: ServerClockOptions;
  readonly #clock: Clock;
  /** Server time minus monotonic time. Before the first measurement by this machine's own clock. */
  #offsetMs: number;
  #measured = false;
  #timer: Timer | undefined;
  #forget: (() => void) | undefined;

  constructor(options: ServerClockOptions) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#offsetMs = this.#clock.now() - this.#clock.monotonic();
  }

  now(): number {
    return Math.floor(this.#offsetMs + this.#clock.monotonic());
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  after(ms: number, fn: () => void): Timer {
    return this.#clock.after(ms, fn);
  }

  /** A message that has just arrived was stored at this time of the server. */
  saw(storedAt: number): void {
    if (storedAt > this.now()) this.#offsetMs = storedAt - this.#clock.monotonic();
  }

  async start(): Promise<void> {
    this.#forget = this.#options.bus.onState((state) => {
      if (state.kind === "reconnected") void this.#measure();
    });
    await this.#measure();
    this.#tick();
  }

  stop = once(async () => {
    this.#forget?.();
    this.#timer?.cancel();
    this.#timer = undefined;
  });

  #tick(): void {
    this.#timer = this.#clock.after(this.#measured ? everyMs : soonMs, async () => {
      await this.#measure();
      if (this.#timer) this.#tick();
    });
  }

  /** The server said what time it is between the question and the answer: the clock is moved no further than into that. */
  async #measure(): Promise<void> {
    const { bus, stream, runtime } = this.#options;
    try {
      const asked = this.#clock.monotonic();
      const info = await bus.streamInfo(stream);
      const answered = this.#clock.monotonic();
      if (!info || Number.isNaN(info.seenAt)) return;
      const least = info.seenAt - answered;
      const most = info.seenAt - asked;
      this.#offsetMs = this.#measured ? Math.min(most, Math.max(least, this.#offsetMs)) : least;
      this.#measured = true;
    } catch (error) {
      // The bus is away: the clock goes on by itself, and is measured when it is back.
      const message = `the server's clock could not be asked for: ${error instanceof Error ? error.message : String(error)}`;
      runtime.announce({ kind: "fault", where: "server clock", code: "server_clock", message, error });
    }
  }
}
