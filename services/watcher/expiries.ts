/**
 * Turns expiry markers of session leases into `session_lost` reports (S5).
 *
 * WATCHER-2 A marker is acknowledged only after its report was stored, or was found not to be needed.
 * WATCHER-3 Everything here may be done twice and by two watchers at once: the message id of the report makes
 *    it one.
 */
import {
  bucketStream,
  bucketSubject,
  type Delivery,
  headerNames,
  leaseKeys,
} from "../../shared/bus/index.ts";
import type { Service } from "../../shared/runtime/index.ts";
import type { WatcherDeps } from "./deps.ts";
import { MarkerFeed, tryAgainMs } from "./marker-feed.ts";
import type { Purges } from "./purge.ts";
import { isAttachedAgain, judgeLoss, reportLoss } from "./report-loss.ts";

/** A session is registered before a worker can claim it; a register that lags gets this many tries. */
const lookups = 5;
const lookAgainMs = 300;

export class Expiries implements Service {
  readonly #deps: WatcherDeps;
  readonly #purges: Purges;
  readonly #feed: MarkerFeed;

  constructor(deps: WatcherDeps, purges: Purges) {
    this.#deps = deps;
    this.#purges = purges;
    this.#feed = new MarkerFeed(deps, {
      consumer: "watcher",
      keys: leaseKeys.allSessions,
      where: "watcher.expiries",
      onExpiry: (message, key) => this.#report(message, key),
    });
  }

  start(): Promise<void> {
    return this.#feed.start();
  }

  stop(): Promise<void> {
    return this.#feed.stop();
  }

  async #report(message: Delivery, key: string): Promise<void> {
    const { registers, counters } = this.#deps;
    const address = leaseKeys.parseSession(key);
    if (address === undefined) {
      return this.#feed.bury(message, "unknown", "invalid_lease_key", "not the key of a session");
    }
    const { sessionId, attachment } = address;
    const looked = await registers.sessions.look(sessionId, { leader: true });
    // E2: the instance was asked to write the entry anew.
    if (looked.kind === "unreadable") return message.nak(tryAgainMs);
    if (looked.kind === "none") return this.#unregistered(message, sessionId);
    const record = looked.entry.value;
    const verdict = judgeLoss(record, attachment);
    if (verdict.kind === "skip") {
      if (verdict.why === "superseded") counters.superseded++;
      message.ack();
      // The holder died before it took the close, or what was sent to it before that.
      if (verdict.why === "over") await this.#purges.afterLoss(record, attachment);
      return;
    }
    if (this.#feed.heldBack(message, record.leaseTtlMs)) return;
    if (await isAttachedAgain(this.#deps, sessionId, attachment)) {
      counters.superseded++;
      return message.ack();
    }
    await reportLoss(this.#deps, record, { attachment, detail: "its lease expired", expiredAt: message.at });
    message.ack();
    await this.#purges.afterLoss(record, attachment);
  }

  /**
   * The session has no register entry, so its instance is unknown and gets no report. Entries of old
   * sessions were removed.
   */
  async #unregistered(message: Delivery, sessionId: string): Promise<void> {
    const { runtime, config, counters, grace } = this.#deps;
    if (runtime.clock.now() - message.at > config.archiveAfterMs + lookups * lookAgainMs)
      return message.ack();
    if (message.deliveries < lookups) return message.nak(lookAgainMs);
    // A server that starts again may end a lease that was released long before (WATCHER-8).
    if (grace.isOfStart(message.at) || (await this.#isForgotten(sessionId))) return message.ack();
    counters.unregistered++;
    const why = `session ${sessionId} is not in the register`;
    await this.#feed.bury(message, sessionId, "session_unregistered", why);
  }

  /**
   * True if the session was over before its register entry was removed. A server that starts again may write an expiry
   * over the tombstone of a lease that was released.
   */
  async #isForgotten(sessionId: string): Promise<boolean> {
    const { name } = this.#deps.registers.sessions.bucket;
    const subject = bucketSubject(name, sessionId);
    const last = await this.#deps.bus.last(bucketStream(name), subject, { leader: true });
    return last?.headers[headerNames.over] !== undefined;
  }
}
