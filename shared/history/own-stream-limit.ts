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
  /** One that has as many copies as own streams get. */
  anyStream: string;
}

interface Sample {
  live: number;
  /** Ours, or what the account allows if that is less. */
  limit: number;
  at: number;
}

export class OwnStreamLimit {
  readonly #options: OwnStreamLimitOptions;
  #sample: Sample | undefined;
  #sampling: Promise<void> | undefined;
  #told = false;

  constructor(options: OwnStreamLimitOptions) {
    this.#options = options;
  }

  /** True: there is room, and it is counted as taken. */
  async take(): Promise<boolean> {
    const { runtime, max } = this.#options;
    if (max === 0) return this.#tell(0, 0);
    if (this.#sample === undefined) await this.#renew();
    else if (runtime.clock.monotonic() - this.#sample.at > sampleEveryMs) void this.#renewQuietly();
    const sample = this.#sample;
    if (sample === undefined) return this.#tell(max, max);
    if (sample.live >= sample.limit) return this.#tell(sample.live, sample.limit);
    sample.live++;
    return true;
  }

  /** The server allows no more: others were faster, or it tells its limit to nobody. Until the next count this is it. */
  refused(): void {
    const sample = this.#sample;
    if (sample === undefined) return;
    sample.live--;
    sample.limit = Math.min(sample.limit, sample.live);
    this.#tell(sample.live, sample.limit);
  }

  #tell(live: number, limit: number): false {
    if (!this.#told) this.#options.runtime.announce({ kind: "history.shared", live, limit });
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

  /** A stream made while a server is away may be given that server as its leader, and waits for an election. */
  async #isDegraded(): Promise<boolean> {
    const { bus, anyStream } = this.#options;
    return bus.clustered() && (await bus.streamInfo(anyStream))?.degraded === true;
  }

  async #ask(): Promise<void> {
    const { bus, others, runtime, max } = this.#options;
    const { streams, maxStreams = Number.POSITIVE_INFINITY } = await bus.account();
    const live = Math.max(0, streams - others);
    // One stays free: the bucket of blobs is made with the first of them.
    const free = Math.max(0, maxStreams - streams - 1);
    const limit = (await this.#isDegraded()) ? 0 : Math.min(max, live + free);
    this.#sample = { live, limit, at: runtime.clock.monotonic() };
  }
}
