/** What this watcher has done since it started, for the register of services and the metrics. */
export interface Counters {
  /** Losses reported to their instances. */
  lost: number;
  /** Losses found by reconciling instead of by their expiry. */
  reconciled: number;
  /** Reports that the server recognised as repetitions. */
  repeated: number;
  /** Expiries of attachments that have been followed by a newer one. */
  superseded: number;
  /** Expiries that waited for the grace period to end (S14). */
  heldBack: number;
  /** Runs whose silence was reported to their instances. */
  silent: number;
  unregistered: number;
  purged: number;
  archived: number;
  removedInstances: number;
  removedSessions: number;
  removedWorkers: number;
}

export const newCounters = (): Counters => ({
  lost: 0,
  reconciled: 0,
  repeated: 0,
  superseded: 0,
  heldBack: 0,
  silent: 0,
  unregistered: 0,
  purged: 0,
  archived: 0,
  removedInstances: 0,
  removedSessions: 0,
  removedWorkers: 0,
});
