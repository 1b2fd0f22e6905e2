import { announceFault, type Clock, once, type Runtime, type Service, type Timer } from "../runtime/index.ts";
import type { Bus } from "./bus.ts";

interface ServerClockOptions {
  bus: Pick<Bus, "onState" | "streamInfo">;
  /** Its leader is asked for the time. Orchestrators ask the one that fires the schedules. */
  stream: string;
  runtime: Runtime;
}

const everyMs = 30_000;
/** Interval until the first measurement succeeds, and after a reconnect to what may be another server. */
const soonMs = 1_000;

export class ServerClock implements Clock, Service {
  readonly #options: ServerClockOptions;
  readonly #clock: Clock;
  /**
   * Server time minus monotonic time. Before the first measurement: this machine's wall clock minus monotonic
   * time.
   */
  #offsetMs: number;
  #measured = false;
  #timer: Timer | undefined;
  #stopListening: (() => void) | undefined;

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

  /** Called with the server's timestamp of a message that has just arrived. */
  saw(storedAt: number): void {
    if (storedAt > this.now()) this.#offsetMs = storedAt - this.#clock.monotonic();
  }

  async start(): Promise<void> {
    this.#stopListening = this.#options.bus.onState((state) => {
      if (state.kind === "reconnected") void this.#measure();
    });
    await this.#measure();
    this.#tick();
  }

  stop = once(async () => {
    this.#stopListening?.();
    this.#timer?.cancel();
    this.#timer = undefined;
  });

  #tick(): void {
    this.#timer = this.#clock.after(this.#measured ? everyMs : soonMs, async () => {
      await this.#measure();
      if (this.#timer) this.#tick();
    });
  }

  /**
   * The server's answer is dated between question and answer: the clock moves no further than into that
   * interval.
   */
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
      // The bus is away: the clock runs on by itself and is measured again after the reconnect.
      announceFault(runtime, "server clock", error, {
        code: "server_clock",
        about: "could not read the server's clock",
      });
    }
  }
}
