import { z } from "zod";
import { Epoch, EventId, InstanceId, Name, SessionId, WorkerId } from "./ids.ts";
import { LossDetail, LossReason } from "./loss.ts";
import { Failure, Follower, Parent, Payload, SchemaVersion } from "./payload.ts";
import {
  Attachment,
  Borrower,
  CheckpointRef,
  Lending,
  MetadataChange,
  PoolSpec,
  SessionBlob,
  SessionOptions,
  SessionState,
} from "./session.ts";
import { wireObject } from "./wire-object.ts";

/** How often and how fast a failed attempt is made again, as recorded. */
export const RetryPolicy = wireObject({
  maxAttempts: z.int().positive(),
  initialDelayMs: z.int().nonnegative(),
  maxDelayMs: z.int().nonnegative(),
  factor: z.number().min(1),
  nonRetryable: z.array(z.string()).default([]),
});
export type RetryPolicy = z.infer<typeof RetryPolicy>;

/** The four timeouts of an activity, in milliseconds. */
export const ActivityTimeouts = wireObject({
  scheduleToStartMs: z.int().positive().optional(),
  startToCloseMs: z.int().positive().optional(),
  scheduleToCloseMs: z.int().positive().optional(),
  heartbeatMs: z.int().positive().optional(),
});
export type ActivityTimeouts = z.infer<typeof ActivityTimeouts>;

/** Where a task runs: any worker of a queue, the holder of a session, or the orchestrator that owns the instance. */
export const TaskTarget = z.discriminatedUnion("kind", [
  wireObject({
    kind: z.literal("queue"),
    queue: Name,
    /** @generation 2 The worker that holds this session is asked first. */
    preferWorkerOf: SessionId.optional(),
  }),
  wireObject({
    kind: z.literal("session"),
    sessionId: SessionId,
    /** A call of the session's type, or an ordinary activity run beside the session's state. */
    call: z.boolean(),
  }),
  /** @generation 2 */
  wireObject({ kind: z.literal("local") }),
]);
export type TaskTarget = z.infer<typeof TaskTarget>;

const event = <K extends string, S extends z.ZodRawShape>(kind: K, shape: S) =>
  wireObject({ id: EventId, kind: z.literal(kind), ...shape });

/** `of` is always the id of the event this one answers. */
const of = EventId;
/** Set on commands the engine issued by itself; replay does not expect the code to issue them. */
const by = z.literal("engine").optional();

/**
 * Rules by which orchestration code runs, recorded with its start.
 * 1: a loser of a race is given up with what it waits for, signals are given out one at a time, and options that do not
 *    exist are refused.
 * 2: an instance that is cancelled while it waits in `Promise.any` ends as cancelled.
 * 3: values that JSON would empty are refused, `ctx.state` takes only what JSON gives back as it was, and code whose
 *    history is as long as `autoContinue` gets no further signal (CONTINUE-1).
 */
export const currentRules = 3;

const instanceEvents = [
  event("instance.started", {
    name: Name,
    input: Payload,
    parent: Parent.optional(),
    /** @generation 2 The instance that receives a signal when this instance ends. */
    follower: Follower.optional(),
    /** State carried over by continue-as-new. */
    carried: wireObject({
      signals: z.array(wireObject({ name: Name, payload: Payload })),
      sessions: z.array(SessionState),
      /**
       * Number of attachments used by closed sessions, by id: a session opened again under the id continues
       * the count.
       */
      spent: z.record(z.string(), z.int().positive()).optional(),
      /** The value of `ctx.state`. @generation 2 */
      state: Payload.optional(),
      /** Updates of earlier executions, latest last: each is applied once. @generation 2 */
      updates: z.array(Name).optional(),
      /** Ids of received signals: the latest, over all executions. */
      messageIds: z.array(z.string()).optional(),
      /** When the first execution began. */
      startedAt: z.number().optional(),
    }).optional(),
    /** Sessions of the parent this child may use. */
    granted: z.array(SessionState).optional(),
    buildId: z.string().optional(),
    traceparent: z.string().optional(),
    /**
     * The rules by which the code runs. Absent: the rules before rule 1. A history is replayed by the rules
     * it was recorded with.
     */
    rules: z.int().nonnegative().optional(),
    /** True if the instance was ended while its start was delayed: the schedule of the start is removed. */
    delayed: z.boolean().optional(),
  }),
  event("instance.completed", { output: Payload }),
  event("instance.failed", { error: Failure, by }),
  event("instance.cancelled", { reason: z.string().optional() }),
  event("instance.terminated", { reason: z.string().optional() }),
  event("instance.continued", {
    name: Name,
    input: Payload,
    /** Signals that the code did not take, for the next execution. */
    signals: z.array(wireObject({ name: Name, payload: Payload })).optional(),
    /** `ctx.state` for the next execution. @generation 2 */
    state: Payload.optional(),
    by,
  }),
] as const;

const activityEvents = [
  event("activity.scheduled", {
    name: Name,
    input: Payload,
    target: TaskTarget,
    retry: RetryPolicy,
    timeouts: ActivityTimeouts,
    by,
  }),
  /** Recorded only if a timeout depends on it. */
  event("activity.started", { of, attempt: z.int().positive(), workerId: WorkerId }),
  event("activity.attempt_failed", {
    of,
    attempt: z.int().positive(),
    error: Failure,
    retryAt: z.number(),
    /**
     * Set if the attempt was cut short by the loss of its session: `counted` against the call, or `free`.
     * `none`: the error code suggests a loss, but there was none. Absent in older histories, where the error
     * code decides. @generation 2
     */
    interruption: z.enum(["none", "free", "counted"]).optional(),
  }),
  event("activity.completed", {
    of,
    output: Payload,
    workerId: WorkerId.optional(),
    epoch: Epoch.optional(),
  }),
  event("activity.failed", { of, error: Failure }),
  event("activity.cancelled", { of, reason: z.string().optional() }),
] as const;

const otherEvents = [
  event("timer.created", { fireAt: z.number() }),
  event("timer.fired", { of }),
  event("timer.cancelled", { of }),
  /** `messageId`: the sender's id of the signal; sent twice to one instance it is one signal. */
  event("signal.received", { name: Name, payload: Payload, messageId: z.string().optional() }),
  /** Q2: the code accepted the update; its handler runs from here on. @generation 2 */
  event("update.accepted", { updateId: Name, name: Name, input: Payload }),
  /** The answer of the handler of the update that was accepted as `of`. @generation 2 */
  event("update.completed", { of, answer: Payload }),
  event("update.failed", { of, error: Failure }),
  event("cancel.requested", { reason: z.string().optional() }),
  event("child.scheduled", {
    name: Name,
    childId: InstanceId,
    input: Payload,
    mode: z.enum(["attached", "detached"]),
    grants: z.array(SessionId),
    /** @generation 2 The signal that a detached child sends when it ends. */
    follow: Name.optional(),
  }),
  /** @generation 2 This instance asks another instance to end. */
  event("end.requested", {
    to: InstanceId,
    verb: z.enum(["cancel", "terminate"]),
    reason: z.string().optional(),
  }),
  event("child.completed", { of, output: Payload }),
  event("child.failed", { of, error: Failure }),
  event("child.cancelled", { of }),
  event("side_effect.recorded", { value: Payload }),
  event("patch.marked", { patch: z.string().min(1) }),
  event("status.set", { status: Payload }),
  /** The instance uses a pool of sessions until it leaves the pool or ends. */
  event("pool.joined", { poolId: Name, pool: PoolSpec }),
  /** An exclusive pool lends a member to the use that began with `of`. */
  event("pool.lent", { of, member: SessionState }),
  /** `of`: the use that ends, if the instance has several. */
  event("pool.left", { poolId: Name, of: EventId.optional() }),
] as const;

const sessionEvents = [
  event("session.opened", {
    sessionId: SessionId,
    type: Name,
    config: Payload.optional(),
    options: SessionOptions,
  }),
  /** The engine asks for a worker: at opening, and again after a loss, a park or a failed init. */
  event("session.requested", {
    sessionId: SessionId,
    attachment: z.int().positive(),
    deadlineAt: z.number(),
    /** Begin from the latest checkpoint instead of `init`. */
    restore: z.boolean(),
  }),
  event("session.claimed", { sessionId: SessionId, on: Attachment }),
  event("session.activated", {
    sessionId: SessionId,
    on: Attachment,
    initMs: z.number(),
    /** The state survived: an owner attached again after an outage of the bus (S14). */
    warm: z.boolean(),
    restored: z.boolean(),
  }),
  event("session.init_failed", { sessionId: SessionId, attachment: z.int().positive(), error: Failure }),
  event("session.failed", { sessionId: SessionId, error: Failure }),
  event("session.lost", {
    sessionId: SessionId,
    on: Attachment.optional(),
    reason: LossReason,
    detail: LossDetail.optional(),
  }),
  event("session.parked", { sessionId: SessionId, epoch: Epoch }),
  event("session.checkpointed", { sessionId: SessionId, checkpoint: CheckpointRef }),
  /** Set by the code of the session's owner, and by the code inside the session. @generation 2 */
  event("session.metadata_set", { sessionId: SessionId, change: MetadataChange }),
  event("session.metadata_reported", { sessionId: SessionId, epoch: Epoch, change: MetadataChange }),
  /** Code inside the session stored bytes under a name, or deleted the name. @generation 2 */
  event("session.blob_changed", {
    sessionId: SessionId,
    epoch: Epoch,
    name: z.string(),
    stored: SessionBlob.optional(),
  }),
  event("session.closed", { sessionId: SessionId, by }),
  /** A member of an exclusive pool is lent to one borrower, and given back. */
  event("session.lent", {
    sessionId: SessionId,
    lending: Lending,
    /** The borrower does not get the member; this is the reason. @generation 2 */
    refused: wireObject({ type: Name, error: Failure }).optional(),
  }),
  /** `from`: the borrower that gives it back. Absent: its only borrower. @generation 2 */
  event("session.returned", { sessionId: SessionId, from: Borrower.optional() }),
] as const;

/** One event of a history. */
export const HistoryEvent = z.discriminatedUnion("kind", [
  ...instanceEvents,
  ...activityEvents,
  ...otherEvents,
  ...sessionEvents,
]);
export type HistoryEvent = z.infer<typeof HistoryEvent>;
/** The name of every kind of event. */
export type EventKind = HistoryEvent["kind"];
/** The event of one kind. */
export type EventOf<K extends EventKind> = Extract<HistoryEvent, { kind: K }>;

/** An event before it has a place in a history. */
export type NewEvent<K extends EventKind = EventKind> = K extends EventKind ? Omit<EventOf<K>, "id"> : never;

/** Everything that one turn recorded, in one message (T1). */
export const Commit = wireObject({
  v: SchemaVersion,
  /** Tells this owner's unanswered append from an append of another owner. */
  commitId: z.string().min(1),
  instanceId: InstanceId,
  /** 0 if only signals have arrived, and no start. */
  execution: z.int().nonnegative(),
  at: z.number(),
  /**
   * Inbox sequences of the messages that caused these facts: a redelivered message is recognised for ever
   * (T7). The first commit of an execution also has the latest sequences of the execution before.
   */
  inbox: z.array(z.int().positive()),
  /** The inbox message that stays unacknowledged while work of this commit is on the lane. */
  anchor: z.int().positive().optional(),
  /** Tasks sent, or about to be sent, by the lane: the next owner must find out what became of them. */
  lane: z.array(EventId).optional(),
  /**
   * Set if the code ran more than once for this commit, because local activities ended before the commit: the
   * first event of each further run. Each run begins with facts, as a commit does. @generation 2
   */
  rounds: z.array(EventId).optional(),
  /**
   * Set if the events were recorded while the instance was parked: the next turn shows them to the code (T6,
   * T9). With several runs this is about the last one.
   */
  deferred: z.literal(true).optional(),
  /**
   * The generation of the newest event kind in this commit: an older process leaves the instance to a newer
   * one. @generation 2
   */
  needs: z.int().positive().optional(),
  events: z.array(HistoryEvent).min(1),
});
export type Commit = z.infer<typeof Commit>;
