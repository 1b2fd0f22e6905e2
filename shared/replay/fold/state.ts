/**
 * The state of an instance, as a fold over its events. The same fold serves the live turn, the replay after a
 * load, the effects to publish, and the tools that explain an instance to people.
 *
 * REPLAY-1 The state changes only by `apply`, and `apply` needs nothing but the event, its time and the
 *    state.
 * REPLAY-2 A task, timer or child is in the state exactly while it is open.
 */
import type {
  ActivityTimeouts,
  Failure,
  Follower,
  InstanceStatus,
  Parent,
  Payload,
  RetryPolicy,
  SessionState,
  TaskTarget,
} from "../../../schemas/index.ts";
import { SparseMap } from "../../runtime/index.ts";

export interface OpenTask {
  readonly id: number;
  readonly name: string;
  readonly input: Payload;
  readonly target: TaskTarget;
  readonly retry: RetryPolicy;
  readonly timeouts: ActivityTimeouts;
  readonly byEngine: boolean;
  readonly scheduledAt: number;
  attempt: number;
  /** When the current attempt may run: now, or later after a failure. */
  readyAt: number;
  /** Recorded only if a timeout needs it. */
  startedAt: number | undefined;
  /** For session tasks: the epoch it was sent to; undefined while it waits for a holder. */
  sentEpoch: number | undefined;
  /** Id of the event that sent it last. */
  sentId: number | undefined;
  /** Attempts that ended because the session was lost under them. */
  interruptions: number;
  /** The part of `interruptions` that counts against `maxAutoRetries`. */
  strikes: number;
  lastError: Failure | undefined;
}

interface OpenChild {
  readonly id: number;
  readonly childId: string;
  readonly name: string;
  readonly grants: readonly string[];
}

export interface PoolUse {
  readonly poolId: string;
  /** For an exclusive pool: the session that this instance has. */
  member: string | undefined;
}

/** An update of the present execution, or `earlier`: its answer is in the history of an earlier execution. */
export type UpdateRecord =
  | { kind: "pending" | "earlier"; of: number }
  | { kind: "completed"; of: number; answer: Payload }
  | { kind: "failed"; of: number; error: Failure };

export interface InstanceState {
  readonly instanceId: string;
  execution: number;
  status: "absent" | InstanceStatus;
  name: string | undefined;
  input: Payload | undefined;
  parent: Parent | undefined;
  follower: Follower | undefined;
  traceparent: string | undefined;
  startedAt: number | undefined;
  endedAt: number | undefined;
  lastEventId: number;
  /** The version of the rules by which the code runs (`instance.started.rules`). */
  rules: number;
  /** Inbox sequences applied in this execution, and the latest of the one before (T7). */
  readonly applied: Set<number>;
  /**
   * Message ids of the signals of this execution, and the latest of earlier ones: each signal is received
   * once.
   */
  readonly messageIds: SparseMap<string, true>;
  /** True if earlier executions received more signals or updates than this one carries the ids of. */
  forgetsIds: boolean;
  readonly tasks: SparseMap<number, OpenTask>;
  readonly timers: SparseMap<number, { fireAt: number }>;
  readonly children: SparseMap<number, OpenChild>;
  readonly sessions: SparseMap<string, SessionState>;
  /** Pools in use, by the id of the event that joined each. */
  readonly pools: SparseMap<number, PoolUse>;
  /** Event ids under which deadlines of sessions were scheduled. */
  readonly sessionSchedules: SparseMap<string, { creation?: number | undefined; life?: number | undefined }>;
  /** Id of the event that ended the last rebuild of a session. */
  readonly rebuilt: SparseMap<string, number>;
  /** Signals that came before the start. */
  earlySignals: { name: string; payload: Payload }[];
  /** By the caller's id (Q2). */
  readonly updates: SparseMap<string, UpdateRecord>;
  /** Updates whose handler has not ended, by the event that accepted each. */
  readonly pendingUpdates: SparseMap<number, string>;
  /** Attachments used up by sessions of earlier executions that have ended, by id. */
  spent: Record<string, number>;
  cancelRequested: boolean;
  cancelReason: string | undefined;
  customStatus: Payload | undefined;
  output: Payload | undefined;
  error: Failure | undefined;
  /** Set by `instance.continued`: the next execution is to be started. */
  next:
    | {
        name: string;
        input: Payload;
        signals: { name: string; payload: Payload }[];
        state: Payload | undefined;
      }
    | undefined;
}

/**
 * How many ids of signals, updates and sessions an execution carries from earlier ones. Older ids are in the
 * history, and their sessions in the register.
 */
export const carriedIds = 1000;

export function initialState(instanceId: string): InstanceState {
  return {
    instanceId,
    execution: 0,
    status: "absent",
    name: undefined,
    input: undefined,
    parent: undefined,
    follower: undefined,
    traceparent: undefined,
    startedAt: undefined,
    endedAt: undefined,
    lastEventId: 0,
    applied: new Set(),
    messageIds: new SparseMap(),
    forgetsIds: false,
    tasks: new SparseMap(),
    timers: new SparseMap(),
    children: new SparseMap(),
    sessions: new SparseMap(),
    pools: new SparseMap(),
    sessionSchedules: new SparseMap(),
    rebuilt: new SparseMap(),
    earlySignals: [],
    updates: new SparseMap(),
    pendingUpdates: new SparseMap(),
    rules: 0,
    spent: {},
    cancelRequested: false,
    cancelReason: undefined,
    customStatus: undefined,
    output: undefined,
    error: undefined,
    next: undefined,
  };
}

export const isEnded = (state: InstanceState): boolean =>
  state.status === "completed" ||
  state.status === "failed" ||
  state.status === "cancelled" ||
  state.status === "terminated";

export function sessionTasks(state: InstanceState, sessionId: string): OpenTask[] {
  const tasks: OpenTask[] = [];
  for (const task of state.tasks.values()) {
    if (task.target.kind === "session" && task.target.sessionId === sessionId) tasks.push(task);
  }
  return tasks;
}

export const isSameParent = (a: Parent | undefined, b: Parent): boolean =>
  a !== undefined && a.instanceId === b.instanceId && a.execution === b.execution && a.of === b.of;
