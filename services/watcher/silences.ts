/**
 * Turns the expiry of a run's heartbeat key into the end of its attempt.
 *
 * BEAT-3 The watcher reports as the run's worker would, under the same message id: reported by both, the
 *    silence counts once, and a later report of a worker that was only paused is late (T5). After an outage
 *    of the bus the watcher waits for one timeout, in which live workers write their keys anew (WATCHER-6).
 */
import { ActivityReport } from "../../schemas/index.ts";
import { activityReportId, type Delivery, encode, inInbox, publishAnew } from "../../shared/bus/index.ts";
import { Fault } from "../../shared/errors/index.ts";
import { type BeatAddress, beatKeys, beatTtlMs, silenceFailure } from "../../shared/leases/index.ts";
import type { Service } from "../../shared/runtime/index.ts";
import type { WatcherDeps } from "./deps.ts";
import { MarkerFeed } from "./marker-feed.ts";

export class Silences implements Service {
  readonly #deps: WatcherDeps;
  readonly #feed: MarkerFeed;

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
    this.#feed = new MarkerFeed(deps, {
      consumer: "watcher_beats",
      keys: beatKeys.all,
      where: "watcher.silences",
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
    const address = beatKeys.parse(key);
    if (!address) return this.#feed.bury(message, "unknown", "invalid_beat_key", "not the key of a run");
    if (this.#feed.heldBack(message, beatTtlMs(address.heartbeatMs))) return;
    const look = await registers.leases.look(key);
    if (look.kind !== "expired" || look.revision !== message.seq) {
      counters.superseded++;
      return message.ack();
    }
    await this.#reportSilence(address, message.at);
    message.ack();
  }

  async #reportSilence(address: BeatAddress, expiredAt: number): Promise<void> {
    const { bus, names, runtime, counters } = this.#deps;
    const { instanceId, execution, of, attempt, name, heartbeatMs, capability } = address;
    const report = ActivityReport.parse({
      ...{ v: 1, execution, of, attempt, workerId: "watcher" },
      result: { kind: "failed", error: silenceFailure(name, heartbeatMs) },
      capability,
    });
    const msgId = activityReportId(address, "failed");
    const outcome = await publishAnew(
      bus,
      runtime.random,
      names.verb(instanceId, "activity"),
      encode(report),
      { msgId, original: inInbox(names, instanceId) },
    );
    if (outcome.kind !== "stored") {
      throw new Fault("transient", {
        code: "silence_unanswered",
        message: `no answer to the report that attempt ${attempt} of ${name} (${instanceId}) is silent`,
      });
    }
    if (outcome.duplicate) {
      counters.repeated++;
      return;
    }
    counters.silent++;
    const lateMs = Math.max(0, runtime.clock.now() - expiredAt);
    runtime.announce({ kind: "activity.silent", instanceId, name, of, attempt, lateMs });
  }
}
