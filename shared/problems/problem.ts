/** What can be wrong with an installation, in the same words for `doctor`, the gateway and the dashboard. */
import type { ServiceInfo, SessionRecord, WorkerInfo } from "../../schemas/index.ts";
import type { FleetView } from "../fleet/index.ts";

export interface Problem {
  level: "error" | "warning";
  /** Stable, for programs. */
  code: string;
  /** The problem, as a sentence. */
  message: string;
  /** What to do about it. */
  remedy?: string;
  /** The session type it is about. */
  sessionType?: string;
}

export type WaitingSession = Pick<
  SessionRecord,
  "sessionId" | "type" | "requires" | "resourceId" | "updatedAt"
>;

/** An installation, as the checks see it. */
export interface InstallationView {
  now: number;
  services: readonly ServiceInfo[];
  workers: readonly WorkerInfo[];
  fleet: FleetView;
  partitions: { wanted: number; held: number };
  /** Instances that have not ended. */
  live: number;
  parked: number;
  deadLetters: number;
  queues: readonly { name: string; messages: number; pending: number; readers: number }[];
  /** Tasks that no worker has taken yet, by activity. */
  tasks: readonly { queue: string; name: string; tasks: number; oldestAt?: number }[];
  /** Sessions that no worker has claimed yet. */
  sessions: readonly WaitingSession[];
}
