/** Memory use of this process, and how late its event loop runs. */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";

export interface Vitals {
  start(): void;
  stop(): void;
  read(): {
    rssBytes: number;
    /** The 99th percentile since the last reading. */
    eventLoopDelayMs: number;
  };
}

const resolutionMs = 20;

export class ProcessVitals implements Vitals {
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });

  start(): void {
    this.#delay.enable();
  }

  stop(): void {
    this.#delay.disable();
  }

  read(): ReturnType<Vitals["read"]> {
    // The histogram holds whole intervals; the delay is the part above the requested interval.
    const p99 = this.#delay.count > 0 ? this.#delay.percentile(99) / 1e6 - resolutionMs : 0;
    this.#delay.reset();
    return {
      rssBytes: process.memoryUsage.rss(),
      eventLoopDelayMs: Math.max(0, Math.round(p99 * 10) / 10),
    };
  }
}
