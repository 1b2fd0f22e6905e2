/** What this watcher has done since it started, for the register of services and the metrics. */
export interface Counters {
  /** Losses told to their instances. */
  lost: number;
  /** Of these, found by reconciling and not by their expiry. */
  reconciled: number;
  /** Told before: a second report that the server recognised. */
  repeated: number;
  /** Expiries of attachments that are no longer the session's own. */
  superseded: number;
  /** Expiries that waited for the grace to be over (S14). */
  heldBack: number;
  /** Runs whose silence was told to their instances. */
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
