/** Raw observations of an installation, before they are judged. */
import type { ServiceInfo, SessionRecord, WorkerInfo } from "../../../schemas/index.ts";
import type { AccountInfo, ConsumerInfo, ServerClockReading, StreamInfo } from "../../../shared/bus/index.ts";
import type { FleetView } from "../../../shared/fleet/index.ts";

/** An entry, and the server's time of its write. */
export interface WrittenEntry<T> {
  value: T;
  at: number;
}

export interface WaitingActivity {
  queue: string;
  name: string;
  tasks: number;
  oldestAt: number;
}

export interface ObservedQueue {
  name: string;
  messages: number;
  consumers: readonly ConsumerInfo[];
}

interface ObservedStream {
  name: string;
  info: StreamInfo | undefined;
  /** True if the stream is always full: it drops the oldest message for the newest. */
  rolls?: boolean;
}

export type WriteTrial = { kind: "stored" } | { kind: "refused"; why: string } | { kind: "unanswered" };

export interface ServerObservations {
  now: number;
  version: string;
  /** How often the server syncs to disk; undefined if unknown. */
  sync: string | undefined;
  maxPayloadBytes: number;
  account: AccountInfo;
  /** How far the server's clock is ahead of this machine's, and the uncertainty. */
  clock: { aheadMs: number; unsureMs: number } | undefined;
  /** Clocks of the servers of a cluster that lead a stream. */
  serverClocks: readonly ServerClockReading[];
  replicas: { wanted: number };
  streams: readonly ObservedStream[];
  /** The result of the test write; undefined if there is no stream to write to. */
  write: WriteTrial | undefined;
}

export interface Observations extends ServerObservations {
  layout: "per-instance" | "shared";
  maxOwnStreams: number;
  ownHistories: number;
  partitions: { count: number; held: readonly number[] };
  watcherLease: "held" | "free";
  queues: readonly ObservedQueue[];
  /** Counted over the oldest tasks. */
  waitingActivities: readonly WaitingActivity[];
  dead: { letters: number; latest: { code: string; message: string } | undefined };
  parked: readonly { instanceId: string; code: string; message: string }[];
  services: readonly WrittenEntry<ServiceInfo>[];
  workers: readonly WrittenEntry<WorkerInfo>[];
  fleet: FleetView;
  openSessions: readonly SessionRecord[];
}

export interface Finding {
  /** Stable, for programs. */
  code: string;
  what: string;
  verdict: "good" | "note" | "wrong";
  found: string;
  /** What to do about it. */
  todo?: string;
}
