import type { Leases } from "../../../shared/leases/index.ts";
import type { WorkerDeps } from "../deps.ts";

/** What the session side of a worker is given. */
export interface SessionDeps extends WorkerDeps {
  /** Renewed off this thread in production (S8). */
  readonly leases: Leases;
  /** The file of the user's application: hosts on threads and in processes load it again. */
  readonly appPath?: string;
  readonly timing?: Partial<SessionTiming>;
}

/** Times that are nobody's business but this part's; named to be short in tests. */
export interface SessionTiming {
  /** A claim that was pulled and not settled for so long goes to another worker. */
  claimAckMs: number;
  /** How long the best worker for a claim may take to answer. */
  nudgeMs: number;
  /** A claim nobody can take rests so long, growing from the first to the last. */
  restMinMs: number;
  restMaxMs: number;
  /** How long a claim that was passed on rests when the other did not answer. */
  passedOnMs: number;
  /** Bounded wait for aborted work and for the user's `shutdown`. */
  closeMs: number;
  /** How long the end of a session is told again while the bus does not answer; then the watcher finds out. */
  tellMs: number;
  /** The server forgets this worker's queue when nobody pulled for so long. */
  queueInactiveMs: number;
  snapshotEveryMs: number;
  /** How often a busy member of a pool looks whether calls wait. */
  poolLookMs: number;
  maxCheckpointBytes: number;
}

export const defaultTiming: SessionTiming = {
  claimAckMs: 3000,
  nudgeMs: 500,
  restMinMs: 100,
  restMaxMs: 1000,
  passedOnMs: 250,
  closeMs: 5000,
  tellMs: 60_000,
  queueInactiveMs: 600_000,
  snapshotEveryMs: 1000,
  poolLookMs: 500,
  maxCheckpointBytes: 64 * 1024 * 1024,
};

export const timingOf = (deps: SessionDeps): SessionTiming => ({ ...defaultTiming, ...deps.timing });
