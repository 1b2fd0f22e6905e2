/**
 * Delivers the expiries of one kind of key in the lease bucket, as they come.
 *
 * WATCHER-1 The durable consumer forgets nothing while markers live: keys that expired while no watcher ran
 *    are delivered when one returns.
 */
import {
  bucketStream,
  bucketSubject,
  bury,
  type Consumption,
  type Delivery,
} from "../../shared/bus/index.ts";
import { isExpiry } from "../../shared/leases/index.ts";
import { announceFault, type Service, sleep } from "../../shared/runtime/index.ts";
import type { WatcherDeps } from "./deps.ts";

/**
 * Short, because a paused watcher may hold messages that were delivered to it; its successor must not wait
 * long for them.
 */
const ackWaitMs = 2000;
const atOnce = 256;
/** Delay before a message is delivered again after a failure. */
export const tryAgainMs = 500;

interface MarkerFeedInit {
  /** Name of the durable consumer. */
  consumer: string;
  /** Pattern of the keys to follow. */
  keys: string;
  /** `where` of the faults that this feed announces. */
  where: string;
  /** Settles the message itself; if it throws, the message is delivered again. */
  onExpiry(message: Delivery, key: string): Promise<void>;
}

export class MarkerFeed implements Service {
  readonly #deps: WatcherDeps;
  readonly #init: MarkerFeedInit;
  readonly #bucket: string;
  readonly #stream: string;
  readonly #keyStart: number;
  #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #consumption: Consumption | undefined;

  constructor(deps: WatcherDeps, init: MarkerFeedInit) {
    this.#deps = deps;
    this.#init = init;
    this.#bucket = deps.names.bucket("leases");
    this.#stream = bucketStream(this.#bucket);
    this.#keyStart = bucketSubject(this.#bucket, "").length;
  }

  async start(): Promise<void> {
    this.#stopping = new AbortController();
    await this.#consume();
    this.#running = this.#keepConsuming();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#consumption?.stop();
    await this.#running;
  }

  async #consume(): Promise<void> {
    const { bus } = this.#deps;
    const { consumer, keys } = this.#init;
    await bus.ensureConsumer({
      stream: this.#stream,
      name: consumer,
      filter: bucketSubject(this.#bucket, keys),
      ackWaitMs,
      // After an outage all expiries wait together for the grace period to end.
      maxAckPending: 100_000,
      headersOnly: true,
    });
    this.#consumption = await bus.consume(this.#stream, consumer, {
      maxMessages: atOnce,
      onMessage: (message) => {
        // Nearly all messages are renewals.
        if (isExpiry(message)) void this.#handle(message);
        else message.ack();
      },
    });
  }

  /**
   * A person may delete the consumer by mistake (F25): it is created anew, and markers it had delivered are
   * delivered again (WATCHER-3).
   */
  async #keepConsuming(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if (this.#consumption && (await this.#consumption.ended) === "stopped") return;
      try {
        if (!signal.aborted) await this.#consume();
        // Opened while `stop` waited: no other code ends it.
        if (signal.aborted) await this.#consumption?.stop();
      } catch (error) {
        this.#consumption = undefined;
        this.#fault(error);
        await sleep(this.#deps.runtime.clock, tryAgainMs, signal);
      }
    }
  }

  /** True if the expiry must wait for the grace period after an outage; it is delivered again then (S14). */
  heldBack(message: Delivery, ttlMs: number | undefined): boolean {
    const { grace, counters } = this.#deps;
    const waitMs = grace.leftMs(ttlMs);
    if (waitMs <= 0) return false;
    if (message.deliveries === 1) counters.heldBack++;
    message.nak(waitMs + 1);
    return true;
  }

  /** Moves a marker to the dead letters when the instance to report to is unknown. */
  async bury(message: Delivery, id: string, code: string, why: string): Promise<void> {
    const buried = await bury(this.#deps, message, { what: "expiry", id, code, message: why });
    if (buried) message.ack();
    else message.nak(tryAgainMs);
  }

  async #handle(message: Delivery): Promise<void> {
    try {
      if (!this.#deps.acting()) return message.nak();
      await this.#init.onExpiry(message, message.subject.slice(this.#keyStart));
    } catch (error) {
      this.#fault(error);
      message.nak(tryAgainMs);
    }
  }

  #fault(error: unknown): void {
    announceFault(this.#deps.runtime, this.#init.where, error, { otherwise: "failed" });
  }
}
