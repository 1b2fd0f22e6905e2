/** The watcher's own settings. */
import { requireTtl } from "../../shared/leases/index.ts";
import type { SettingsOf } from "../config.ts";
import { setting } from "../setting.ts";

const { duration } = setting;
const second = 1000;
const minute = 60 * second;
const day = 24 * 60 * minute;

export const watcherSettings = {
  WATCHER_LEASE_TTL: duration(second, minute)
    .default(3 * second)
    .describe("How long the acting watcher may be silent before the other one acts. Whole seconds."),
  WATCHER_GRACE: duration(second, 10 * minute)
    .default(15 * second)
    .describe(
      "After an outage of NATS, expiries of session leases wait for the session's lease TTL; for this long if the session names none.",
    ),
  WATCHER_RECONCILE_EVERY: duration(100, minute)
    .default(5 * second)
    .describe("How often registered sessions are compared with leases, the second net."),
  WATCHER_SWEEP_EVERY: duration(100, 60 * minute)
    .default(30 * second)
    .describe("How often ended instances and dead workers are tidied up."),
  WATCHER_DEAD_AFTER: duration(second, 60 * minute)
    .default(minute)
    .describe(
      "A worker that has been unregistered for so long and holds no lease: its messages and its consumer are removed.",
    ),
  ARCHIVE_AFTER: duration(0, 365 * day)
    .default(minute)
    .describe("The history of an ended instance leaves its own stream after this."),
  RETAIN_FOR: duration(0, 3650 * day)
    .default(30 * day)
    .describe(
      "Ended instances are removed after this, and signals to ids that were never started. 0: never.",
    ),
  WATCHER_SWEEP_LIMIT: setting
    .wholeNumber(1, 100_000)
    .default(500)
    .describe("How many items one step of a sweep handles at most."),
};

export interface WatcherConfig {
  readonly leaseTtlMs: number;
  readonly graceMs: number;
  readonly reconcileEveryMs: number;
  readonly sweepEveryMs: number;
  readonly deadAfterMs: number;
  readonly archiveAfterMs: number;
  readonly retainForMs: number;
  /** How many items one step of a sweep handles at most. */
  readonly sweepLimit: number;
}

export function watcherConfig(settings: SettingsOf<typeof watcherSettings>): WatcherConfig {
  return Object.freeze({
    leaseTtlMs: requireTtl(settings.WATCHER_LEASE_TTL, "WATCHER_LEASE_TTL"),
    graceMs: settings.WATCHER_GRACE,
    reconcileEveryMs: settings.WATCHER_RECONCILE_EVERY,
    sweepEveryMs: settings.WATCHER_SWEEP_EVERY,
    deadAfterMs: settings.WATCHER_DEAD_AFTER,
    archiveAfterMs: settings.ARCHIVE_AFTER,
    retainForMs: settings.RETAIN_FOR,
    sweepLimit: settings.WATCHER_SWEEP_LIMIT,
  });
}

export const defaultWatcherConfig: WatcherConfig = Object.freeze({
  leaseTtlMs: 3 * second,
  graceMs: 15 * second,
  reconcileEveryMs: 5 * second,
  sweepEveryMs: 30 * second,
  deadAfterMs: minute,
  archiveAfterMs: minute,
  retainForMs: 30 * day,
  sweepLimit: 500,
});
