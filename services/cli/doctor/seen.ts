/** What can be seen of an installation from outside, before anything is made of it. */
import type { ServiceInfo, SessionRecord, WorkerInfo } from "../../../schemas/index.ts";
import type { AccountInfo, ConsumerInfo, ServerClockReading, StreamInfo } from "../../../shared/bus/index.ts";
import type { FleetView } from "../../../shared/fleet/index.ts";

/** A value somebody wrote, and the server's time of that write. */
export interface Written<T> {
  value: T;
  at: number;
}

export interface WaitingActivity {
  queue: string;
  name: string;
  tasks: number;
  oldestAt: number;
}

export interface SeenQueue {
  name: string;
  messages: number;
  consumers: readonly ConsumerInfo[];
}

export interface SeenStream {
  name: string;
  info: StreamInfo | undefined;
  /** Full is its normal state: the oldest makes room for the newest. */
  rolls?: boolean;
}

export type WriteTrial = { kind: "stored" } | { kind: "refused"; why: string } | { kind: "unanswered" };

export interface SeenServer {
  now: number;
  version: string;
  /** When it writes to disk, where we know. */
  sync: string | undefined;
  maxPayloadBytes: number;
  account: AccountInfo;
  /** How far its clock is ahead of ours, and how sure that is. */
  clock: { aheadMs: number; unsureMs: number } | undefined;
  /** Of a cluster's servers, as far as they lead anything. */
  serverClocks: readonly ServerClockReading[];
  replicas: { wanted: number };
  streams: readonly SeenStream[];
  /** What came of trying to store something; undefined where there is nothing to store it in. */
  write: WriteTrial | undefined;
}

export interface Seen extends SeenServer {
  layout: "per-instance" | "shared";
  maxOwnStreams: number;
  ownHistories: number;
  partitions: { count: number; held: readonly number[] };
  watcherLease: "held" | "free";
  queues: readonly SeenQueue[];
  /** Of the oldest tasks. */
  waitingActivities: readonly WaitingActivity[];
  dead: { letters: number; latest: { code: string; message: string } | undefined };
  parked: readonly { instanceId: string; code: string; message: string }[];
  services: readonly Written<ServiceInfo>[];
  workers: readonly Written<WorkerInfo>[];
  fleet: FleetView;
  openSessions: readonly SessionRecord[];
}

export interface Finding {
  /** Stable: what programs match on. */
  code: string;
  what: string;
  verdict: "good" | "note" | "wrong";
  found: string;
  /** What to do about it. */
  todo?: string;
}
