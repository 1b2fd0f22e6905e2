/**
 * Pulls the tasks of an activity with a rate limit one by one; each waits for its reserved instant without a
 * slot. Of one bucket a worker holds one waiting task, so that other workers find the rest. Of an activity
 * with many buckets it holds several, so that one key does not hold up the others.
 */
import { createHash } from "node:crypto";
import type { Delivery } from "../../../../shared/bus/index.ts";
import type { RateLimit } from "../../../../shared/definitions/index.ts";
import { once, parseDuration, type Service, sleep, type Timer } from "../../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../../deps.ts";
import { decodeTask } from "../refusing/decode-task.ts";
import type { Feed } from "./feed.ts";
import type { Rate, RateLimiter } from "./rate-limiter.ts";

const askMs = 5_000;
const pauseMs = 500;
const keysAtOnce = 32;

export class LimitedPull implements Service {
  readonly #deps: WorkerDeps;
  readonly #feed: Feed;
  readonly #limit: RateLimit;
  readonly #rate: Rate;
  readonly #limiter: RateLimiter;
  readonly #onMessage: (message: Delivery, feed: Feed) => void;
  readonly #stopping = new AbortController();
  readonly #waiting = new Set<Promise<void>>();
  #loop: Promise<void> | undefined;

  constructor(
    deps: WorkerDeps,
    feed: Feed,
    limit: RateLimit,
    limiter: RateLimiter,
    onMessage: (message: Delivery, feed: Feed) => void,
  ) {
    this.#deps = deps;
    this.#feed = feed;
    this.#limit = limit;
    this.#limiter = limiter;
    this.#onMessage = onMessage;
    this.#rate = { intervalMs: parseDuration(limit.per, "rate.per") / limit.limit, burst: limit.burst ?? 1 };
  }

  async start(): Promise<void> {
    await this.#feed.prepare();
    this.#loop = this.#pull();
  }

  /** Gives waiting tasks back, so that other workers can begin them. */
  stop = once(async () => {
    this.#stopping.abort();
    await this.#loop;
    await Promise.all(this.#waiting);
  });

  async #pull(): Promise<void> {
    const { clock } = this.#deps.runtime;
    const { signal } = this.#stopping;
    const atOnce = this.#limit.key ? keysAtOnce : 1;
    while (!signal.aborted) {
      while (this.#waiting.size >= atOnce) await Promise.race(this.#waiting);
      if (signal.aborted) return;
      const askedAt = clock.monotonic();
      const delivery = await this.#feed.next(askMs);
      if (delivery) {
        const held = this.#hold(delivery).finally(() => this.#waiting.delete(held));
        this.#waiting.add(held);
      } else if (clock.monotonic() - askedAt < pauseMs) {
        // No answer: the consumer or the server may be gone.
        await sleep(clock, pauseMs, signal);
        await this.#feed.prepare().catch(() => undefined);
      }
    }
  }

  async #hold(delivery: Delivery): Promise<void> {
    const { clock } = this.#deps.runtime;
    const { signal } = this.#stopping;
    let keepAlive: Timer | undefined;
    const keep = () => {
      keepAlive = clock.after(this.#deps.config.activities.ackWaitMs / 3, () => {
        delivery.working();
        keep();
      });
    };
    keep();
    const waitMs = await this.#limiter.reserve(this.#key(delivery), this.#rate, signal);
    if (!signal.aborted && waitMs > 0) await sleep(clock, waitMs, signal);
    keepAlive?.cancel();
    if (signal.aborted) delivery.nak();
    else this.#onMessage(delivery, this.#feed);
  }

  #key(delivery: Delivery): string {
    const { queue, name } = this.#feed.activity;
    const of = this.#limit.of === "queue" ? `queue.${queue}` : `activity.${queue}.${name}`;
    const { key } = this.#limit;
    if (!key) return `rate.${of}`;
    const decoded = decodeTask(delivery, this.#feed.activity);
    const input = decoded.kind === "invalid" ? undefined : decoded.task.input;
    const value = input && "json" in input ? input.json : undefined;
    return `rate.${of}.${digest(keyText(key, value))}`;
  }
}

/**
 * An input without the key's fields fails when it runs; until then it shares a bucket with other such inputs.
 */
function keyText(key: (input: never) => string, input: unknown): string {
  try {
    return String(key(input as never));
  } catch {
    return "";
  }
}

const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);
