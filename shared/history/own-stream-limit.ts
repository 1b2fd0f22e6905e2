/** How many histories have a stream of their own: sampled, because asking each time would cost a round trip a start. */
import type { Bus } from "../bus/bus.ts";
import { isFault } from "../errors/index.ts";
import { type Runtime, sleep } from "../runtime/index.ts";

const sampleEveryMs = 1_000;
/** Then whoever waits for the first count fails, and tries again with its turn. */
const patienceMs = 30_000;

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
    else if (!this.#sampling && runtime.clock.monotonic() - this.#sample.at > sampleEveryMs)
      void this.#renew().catch(() => undefined); // people were told; the old count serves on
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

  /** One question for all who want to know, asked again for all of them: of a server that is slow each would tell people. */
  #renew(): Promise<void> {
    this.#sampling ??= this.#askUntilAnswered().finally(() => {
      this.#sampling = undefined;
    });
    return this.#sampling;
  }

  async #askUntilAnswered(): Promise<void> {
    const { clock, announce } = this.#options.runtime;
    const until = clock.monotonic() + patienceMs;
    for (;;) {
      try {
        return await this.#ask();
      } catch (error) {
        const message = `how many streams there are: ${error instanceof Error ? error.message : String(error)}`;
        announce({ kind: "fault", where: "history", code: "stream_count", message, error });
        if (!isFault(error, "transient") || error.code === "bus_closed" || clock.monotonic() >= until)
          throw error;
      }
      await sleep(clock, sampleEveryMs);
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
