import type { Leases } from "../../../shared/leases/index.ts";
import type { WorkerDeps } from "../deps.ts";
import type { Will } from "../supervise/last-will.ts";

/** Dependencies of the session side of a worker. */
export interface SessionDeps extends WorkerDeps {
  /** Renewed on another thread in production (S8). */
  readonly leases: Leases;
  /** The file of the user's application: hosts on threads and in processes load it again. */
  readonly appPath?: string;
  /** What process hosts do if this worker dies; undefined if its supervisor does it. */
  readonly will?: Will | undefined;
  readonly timing?: Partial<SessionTiming>;
}

/** Internal times of the session side; tests shorten them. */
export interface SessionTiming {
  /** A claim that was pulled and not settled for this long goes to another worker. */
  claimAckMs: number;
  /** How long the best worker for a claim may take to answer. */
  forwardMs: number;
  /**
   * How long a claim that no worker can take stays in the queue, growing from the first value to the last.
   */
  restMinMs: number;
  restMaxMs: number;
  /** How long a forwarded claim stays in the queue if the other worker did not answer. */
  passedOnMs: number;
  /** Bounded wait for aborted work and for the user's `shutdown`. */
  closeMs: number;
  /**
   * How long the report of a session's end is repeated while the bus does not answer; then the watcher
   * notices the end.
   */
  reportMs: number;
  /** The server removes this worker's consumer if it was not pulled from for this long. */
  queueInactiveMs: number;
  snapshotEveryMs: number;
  /** How often a busy member of a pool checks whether calls wait. */
  poolLookMs: number;
  maxCheckpointBytes: number;
  maxBlobBytes: number;
}

export const defaultTiming: SessionTiming = {
  claimAckMs: 3000,
  forwardMs: 500,
  restMinMs: 100,
  restMaxMs: 1000,
  passedOnMs: 250,
  closeMs: 5000,
  reportMs: 60_000,
  queueInactiveMs: 600_000,
  snapshotEveryMs: 1000,
  poolLookMs: 500,
  maxCheckpointBytes: 64 * 1024 * 1024,
  maxBlobBytes: 64 * 1024 * 1024,
};

export const timingOf = (deps: SessionDeps): SessionTiming => ({ ...defaultTiming, ...deps.timing });
