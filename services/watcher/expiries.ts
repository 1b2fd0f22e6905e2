/**
 * From expiry marker to `session_lost` (S5).
 *
 * WATCHER-1 The durable consumer forgets nothing while markers live: what expired while nobody watched is delivered on return.
 * WATCHER-2 A marker is acknowledged only after its report was stored, or was found not to be needed.
 * WATCHER-3 Everything here may be done twice and by two watchers at once: the message id of the report makes it one.
 */
import {
  bucketStream,
  bucketSubject,
  bury,
  type Consumption,
  type Delivery,
  leaseKeys,
} from "../../shared/bus/index.ts";
import { isFault } from "../../shared/errors/index.ts";
import { isExpiry } from "../../shared/leases/index.ts";
import { type Service, sleep } from "../../shared/runtime/index.ts";
import type { WatcherDeps } from "./deps.ts";
import type { Purges } from "./purge.ts";
import { isAttachedAgain, judgeLoss, reportLoss } from "./report-loss.ts";

const consumer = "watcher";
/** Short, because a paused watcher may sit on what it was handed; whoever takes over must not wait for it. */
const ackWaitMs = 2000;
const atOnce = 256;
/** A session is registered before it can be claimed; a register that lags is given these many tries. */
const lookups = 5;
const lookAgainMs = 300;
const tryAgainMs = 500;

export class Expiries implements Service {
  readonly #deps: WatcherDeps;
  readonly #purges: Purges;
  readonly #stream: string;
  readonly #keyStart: number;
  #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #consumption: Consumption | undefined;

  constructor(deps: WatcherDeps, purges: Purges) {
    const bucket = deps.names.bucket("leases");
    this.#deps = deps;
    this.#purges = purges;
    this.#stream = bucketStream(bucket);
    this.#keyStart = bucketSubject(bucket, "").length;
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
    const { bus, names } = this.#deps;
    await bus.ensureConsumer({
      stream: this.#stream,
      name: consumer,
      filter: bucketSubject(names.bucket("leases"), leaseKeys.allSessions),
      ackWaitMs,
      // After an outage all of them wait together for the grace to be over.
      maxAckPending: 100_000,
      headersOnly: true,
    });
    this.#consumption = await bus.consume(this.#stream, consumer, {
      maxMessages: atOnce,
      onMessage: (message) => {
        // Nearly all of it is renewals.
        if (isExpiry(message)) void this.#handle(message);
        else message.ack();
      },
    });
  }

  /** Somebody may delete the consumer by mistake (F25): it is made anew, and what it had seen is seen again (WATCHER-3). */
  async #keepConsuming(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if (this.#consumption && (await this.#consumption.ended) === "stopped") return;
      try {
        if (!signal.aborted) await this.#consume();
      } catch (error) {
        this.#consumption = undefined;
        this.#fault(error);
        await sleep(this.#deps.runtime.clock, tryAgainMs, signal);
      }
    }
  }

  async #handle(message: Delivery): Promise<void> {
    try {
      if (!this.#deps.acting()) return message.nak();
      await this.#report(message);
    } catch (error) {
      this.#fault(error);
      message.nak(tryAgainMs);
    }
  }

  async #report(message: Delivery): Promise<void> {
    const { registers, grace, counters } = this.#deps;
    const address = leaseKeys.parseSession(message.subject.slice(this.#keyStart));
    if (address === undefined) return this.#bury(message, "invalid_lease_key", "not the key of a session");
    const { sessionId, attachment } = address;
    const looked = await registers.sessions.look(sessionId, { leader: true });
    // E2: its instance was asked to write it anew.
    if (looked.kind === "unreadable") return message.nak(tryAgainMs);
    if (looked.kind === "none") return this.#unregistered(message, sessionId);
    const record = looked.entry.value;
    const verdict = judgeLoss(record, attachment);
    if (verdict.kind === "skip") {
      if (verdict.why === "superseded") counters.superseded++;
      return message.ack();
    }
    const waitMs = grace.leftMs(record.leaseTtlMs);
    if (waitMs > 0) {
      if (message.deliveries === 1) counters.heldBack++;
      return message.nak(waitMs + 1);
    }
    if (await isAttachedAgain(this.#deps, sessionId, attachment)) {
      counters.superseded++;
      return message.ack();
    }
    await reportLoss(this.#deps, record, { attachment, detail: "its lease expired", expiredAt: message.at });
    message.ack();
    await this.#purges.afterLoss(record, attachment);
  }

  /** Its instance cannot be told, because nobody knows it. Old ones were registered once and have been forgotten since. */
  async #unregistered(message: Delivery, sessionId: string): Promise<void> {
    const { runtime, config, counters } = this.#deps;
    if (runtime.clock.now() - message.at > config.archiveAfterMs + lookups * lookAgainMs)
      return message.ack();
    if (message.deliveries < lookups) return message.nak(lookAgainMs);
    counters.unregistered++;
    await this.#bury(message, "session_unregistered", `session ${sessionId} is not in the register`);
  }

  async #bury(message: Delivery, code: string, why: string): Promise<void> {
    const id = leaseKeys.parseSession(message.subject.slice(this.#keyStart))?.sessionId ?? "unknown";
    const buried = await bury(this.#deps, message, { what: "expiry", id, code, message: why });
    if (buried) message.ack();
    else message.nak(tryAgainMs);
  }

  #fault(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const code = isFault(error) ? error.code : "failed";
    this.#deps.runtime.announce({ kind: "fault", where: "watcher.expiries", code, message, error });
  }
}
