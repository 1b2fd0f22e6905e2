/**
 * Limits how many histories have a stream of their own. The count is sampled, because asking the server each
 * time would cost one round trip per start.
 */
import type { Bus } from "../bus/index.ts";
import { isFault, messageOf } from "../errors/index.ts";
import { type Runtime, sleep } from "../runtime/index.ts";

const sampleEveryMs = 1_000;
/** After this time a caller that waits for the first count fails, and tries again with its turn. */
const patienceMs = 30_000;

interface OwnStreamLimitOptions {
  bus: Bus;
  runtime: Runtime;
  max: number;
  /** Number of the installation's streams that are not histories of single instances. */
  others: number;
  /** Name of a stream that has as many replicas as own streams get. */
  anyStream: string;
}

interface Sample {
  live: number;
  /** The configured limit, or the account's limit if that is lower. */
  limit: number;
  at: number;
}

export class OwnStreamLimit {
  readonly #options: OwnStreamLimitOptions;
  #sample: Sample | undefined;
  #sampling: Promise<void> | undefined;
  #announced = false;

  constructor(options: OwnStreamLimitOptions) {
    this.#options = options;
  }

  /** Returns true if there is room for one more stream, and counts it as taken. */
  async take(): Promise<boolean> {
    const { runtime, max } = this.#options;
    if (max === 0) return this.#announceFull(0, 0);
    if (this.#sample === undefined) await this.#renew();
    else if (!this.#sampling && runtime.clock.monotonic() - this.#sample.at > sampleEveryMs)
      void this.#renew().catch(() => undefined); // the fault was announced; the old count stays in use
    const sample = this.#sample;
    if (sample === undefined) return this.#announceFull(max, max);
    if (sample.live >= sample.limit) return this.#announceFull(sample.live, sample.limit);
    sample.live++;
    return true;
  }

  /**
   * Called when the server refuses a stream: other processes were faster, or the server does not report its
   * limit. The present count is the limit until the next sample.
   */
  refused(): void {
    const sample = this.#sample;
    if (sample === undefined) return;
    sample.live--;
    sample.limit = Math.min(sample.limit, sample.live);
    this.#announceFull(sample.live, sample.limit);
  }

  #announceFull(live: number, limit: number): false {
    if (!this.#announced) this.#options.runtime.announce({ kind: "history.shared", live, limit });
    this.#announced = true;
    return false;
  }

  /**
   * All callers share one request and its retries: otherwise each would announce that the server is slow.
   */
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
        const message = `could not count the streams: ${messageOf(error)}`;
        announce({ kind: "fault", where: "history", code: "stream_count", message, error });
        if (!isFault(error, "transient") || error.code === "bus_closed" || clock.monotonic() >= until)
          throw error;
      }
      await sleep(clock, sampleEveryMs);
    }
  }

  /**
   * A stream created while a server is away may get that server as its leader, and then waits for an
   * election.
   */
  async #isDegraded(): Promise<boolean> {
    const { bus, anyStream } = this.#options;
    return bus.clustered() && (await bus.streamInfo(anyStream))?.degraded === true;
  }

  async #ask(): Promise<void> {
    const { bus, others, runtime, max } = this.#options;
    const { streams, maxStreams = Number.POSITIVE_INFINITY } = await bus.account();
    const live = Math.max(0, streams - others);
    // One stream stays free: the bucket of blobs is created with the first blob.
    const free = Math.max(0, maxStreams - streams - 1);
    const limit = (await this.#isDegraded()) ? 0 : Math.min(max, live + free);
    this.#sample = { live, limit, at: runtime.clock.monotonic() };
  }
}
