/** How many histories have a stream of their own: sampled, because asking each time would cost a round trip a start. */
import type { Bus } from "../bus/bus.ts";
import type { Runtime } from "../runtime/index.ts";

const sampleEveryMs = 1_000;

export interface OwnStreamLimitOptions {
  bus: Bus;
  runtime: Runtime;
  max: number;
  /** Streams of the installation that are no histories of single instances. */
  others: number;
}

export class OwnStreamLimit {
  readonly #options: OwnStreamLimitOptions;
  #sample: { live: number; at: number } | undefined;
  #sampling: Promise<void> | undefined;
  #told = false;

  constructor(options: OwnStreamLimitOptions) {
    this.#options = options;
  }

  /** True: there is room, and it is counted as taken. */
  async take(): Promise<boolean> {
    const { runtime, max } = this.#options;
    if (max === 0) return this.#tell(0);
    if (this.#sample === undefined) await this.#renew();
    else if (runtime.clock.monotonic() - this.#sample.at > sampleEveryMs) void this.#renewQuietly();
    const sample = this.#sample;
    if (sample === undefined || sample.live >= max) return this.#tell(sample?.live ?? max);
    sample.live++;
    return true;
  }

  #tell(live: number): false {
    if (!this.#told)
      this.#options.runtime.announce({ kind: "history.shared", live, limit: this.#options.max });
    this.#told = true;
    return false;
  }

  #renew(): Promise<void> {
    this.#sampling ??= this.#ask().finally(() => {
      this.#sampling = undefined;
    });
    return this.#sampling;
  }

  /** The old count serves on; the next start asks again. */
  async #renewQuietly(): Promise<void> {
    try {
      await this.#renew();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#options.runtime.announce({
        kind: "fault",
        where: "history",
        code: "stream_count",
        message,
        error,
      });
    }
  }

  async #ask(): Promise<void> {
    const { bus, others, runtime } = this.#options;
    const count = await bus.streamCount();
    this.#sample = { live: Math.max(0, count - others), at: runtime.clock.monotonic() };
  }
}
