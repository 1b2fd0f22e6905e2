/** The work of an instance with its times, and the workers that held its sessions. */
import type { Failure, HistoryEvent, InstanceStatus, Payload } from "../../schemas/index.ts";

/** An event with the time of its turn. */
export interface DatedEvent {
  readonly at: number;
  readonly event: HistoryEvent;
}

export type WorkState = "open" | "completed" | "failed" | "cancelled";

export interface Work {
  kind: "activity" | "call" | "child" | "timer";
  /** Id of the event that began it. */
  id: number;
  name: string;
  from: number;
  to: number | undefined;
  state: WorkState;
  queue?: string;
  /** True if it ran in the orchestrator's process. */
  local?: boolean;
  /** The session on which it runs: a call, or an activity placed with the session. */
  sessionId?: string;
  childId?: string;
  /** True for a child that its parent does not wait for. */
  detached?: boolean;
  fireAt?: number;
  workerId?: string;
  epoch?: number;
  startedAt?: number;
  /** Failed attempts so far, latest last. */
  attempts: { at: number; attempt: number; error: Failure; retryAt: number }[];
  /** When the next attempt is due; undefined while an attempt runs. */
  retryAt?: number | undefined;
  /** The failure as recorded, with its stack. */
  failure?: Failure;
  input?: Payload;
  byEngine?: boolean;
}

export interface Segment {
  phase: "waiting" | "starting" | "held" | "parked";
  from: number;
  to: number | undefined;
  workerId?: string;
  epoch?: number;
  attachment?: number;
}

/** Something that happened to a session at one moment. */
export interface Mark {
  at: number;
  kind:
    | "lost"
    | "reclaimed"
    | "checkpoint"
    | "metadata"
    | "blob"
    | "init failed"
    | "failed"
    | "closed"
    | "lent"
    | "returned";
  text: string;
  id: number;
}

/** `open`: in progress. `waiting`: for a time, a worker or a signal. */
export type Standing = "open" | "waiting" | "done" | "failed" | "cancelled";

export interface SessionLife {
  /** Id of the event that brought the session; 0 if an earlier execution or the parent did. */
  id: number;
  sessionId: string;
  type: string;
  /** Event id of the pool use for which the session was lent. */
  lentFor?: number;
  from: number;
  to: number | undefined;
  segments: Segment[];
  marks: Mark[];
  /** How the session is after the last event, in words. */
  standing: Standing;
  note: string;
  /** How often its holder was lost, and the text about the latest loss. */
  losses?: { count: number; last: string };
}

/** A signal, an update or the request to cancel. */
export interface Received {
  kind: "signal" | "update" | "cancel";
  id: number;
  at: number;
  name: string;
  /** For an update: when and how it was answered. */
  answered?: { at: number; failure?: Failure };
}

export interface PoolUse {
  id: number;
  poolId: string;
  from: number;
  to: number | undefined;
}

/** The latest execution of an instance. */
export interface InstanceTimeline {
  name: string | undefined;
  /** An instance is never parked here: no event records that. */
  status: InstanceStatus;
  /** When the first execution began. */
  startedAt: number | undefined;
  endedAt: number | undefined;
  /** Why the instance ended, or the status that its code set last. */
  note: string | Payload;
  /** Time of the first event of the execution. */
  from: number;
  /** Time of the last event. */
  last: number;
  /** True if the execution has ended. */
  ended: boolean;
  work: Work[];
  sessions: SessionLife[];
  received: Received[];
  pools: PoolUse[];
}
