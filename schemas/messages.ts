import { z } from "zod";
import { ActivityTimeouts } from "./events.ts";
import { Epoch, EventId, InstanceId, Name, SessionId, WorkerId } from "./ids.ts";
import { LossReason, OnLost } from "./loss.ts";
import { Failure, Payload, SchemaVersion } from "./payload.ts";
import {
  Attachment,
  CheckpointRef,
  Concurrency,
  MetadataChange,
  Requirements,
  SessionBlob,
  SessionState,
} from "./session.ts";
import { wireObject } from "./wire-object.ts";

/** One attempt to run an activity, on `activities.<queue>.<name>` or inside `SessionWork`. */
export const ActivityTask = wireObject({
  v: SchemaVersion,
  instanceId: InstanceId,
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
  name: Name,
  input: Payload,
  scheduledAt: z.number(),
  /** Timeouts of this attempt: schedule-to-start and the rest of schedule-to-close count from `scheduledAt`. */
  timeouts: ActivityTimeouts,
  /** True if the worker must report the start of the run, because a timeout counts from it. */
  reportStart: z.boolean(),
  traceparent: z.string().optional(),
  /** Made by an orchestrator; whoever runs the task shows it with all it says about it (C1). @generation 2 */
  capability: z.string().optional(),
  /** Key of the heartbeat details, the same for all attempts. Absent: see `detailsKey`. @generation 2 */
  detailsKey: z.string().optional(),
});
export type ActivityTask = z.infer<typeof ActivityTask>;

/** Header on a signal: the sender's id of it. Sent twice to one instance it is one signal. */
export const messageIdHeader = "Holdfast-Message-Id";

/** A worker's report to an instance about one attempt, verb `activity`. */
export const ActivityReport = wireObject({
  v: SchemaVersion,
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
  workerId: WorkerId,
  /** The epoch under which the session ran the work; absent for plain activities. */
  epoch: Epoch.optional(),
  result: z.discriminatedUnion("kind", [
    wireObject({ kind: z.literal("started") }),
    wireObject({ kind: z.literal("completed"), output: Payload }),
    wireObject({ kind: z.literal("failed"), error: Failure }),
    /** The user's state for a bare session is gone: the session's recovery policy decides, not the retry policy. */
    wireObject({ kind: z.literal("state_missing"), message: z.string() }),
  ]),
  /** The task's, or one derived from it (C1). @generation 2 */
  capability: z.string().optional(),
});
export type ActivityReport = z.infer<typeof ActivityReport>;

/** A call for the holder of a session. */
export const SessionCall = wireObject({
  v: SchemaVersion,
  kind: z.literal("call"),
  epoch: Epoch,
  call: z.boolean(),
  task: ActivityTask,
  /** Number of the lending, on a lent pool member: work of an earlier lending is dropped. */
  lending: z.int().positive().optional(),
});
export type SessionCall = z.infer<typeof SessionCall>;

/** Identifies one attempt at a task. */
const TaskAttempt = {
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
};

/** A call whose code had begun when its session was given up. */
export const RunningCall = z.strictObject({ instanceId: InstanceId, ...TaskAttempt });
export type RunningCall = z.infer<typeof RunningCall>;

/** Header on lane work: the orchestrator to whose lane the result goes. */
export const laneOwnerHeader = "Holdfast-Owner";

/** Header on queued work that was sent by the lane before and may have begun there. */
export const laneBeforeHeader = "Holdfast-Lane-Before";

/** On several tasks in one message by the lane: how many. Without it the message is one task. */
export const laneTasksHeader = "Holdfast-Lane-Tasks";

/** Tasks of one activity by the lane, of any instances; each is taken or refused by itself. @generation 2 */
export const LaneTasks = wireObject({ v: SchemaVersion, tasks: z.array(ActivityTask).min(1) });
export type LaneTasks = z.infer<typeof LaneTasks>;

/** This worker runs it. */
const LaneTaken = wireObject({ v: SchemaVersion, kind: z.literal("taken"), workerId: WorkerId });
/** This worker ran it; the report is part of the answer. */
const LaneDone = wireObject({
  v: SchemaVersion,
  kind: z.literal("done"),
  workerId: WorkerId,
  report: ActivityReport,
});
/** This worker has no slot, or does not hold the session: the orchestrator sends it by the queue. */
const LaneRefused = wireObject({ v: SchemaVersion, kind: z.literal("refused") });

/** The answer to work and to reports on the lane. Only `taken` and `recorded` are promises. */
export const LaneAnswer = z.discriminatedUnion("kind", [
  LaneTaken,
  LaneDone,
  LaneRefused,
  /** To several tasks in one message: one answer for each, in their order. @generation 2 */
  wireObject({
    v: SchemaVersion,
    kind: z.literal("several"),
    answers: z.array(z.discriminatedUnion("kind", [LaneTaken, LaneDone, LaneRefused])),
  }),
  /** The report is in the history, and its effects are published. */
  wireObject({ v: SchemaVersion, kind: z.literal("recorded") }),
  /** This orchestrator does not own the instance: the worker sends the report to the inbox. */
  wireObject({ v: SchemaVersion, kind: z.literal("elsewhere") }),
]);
export type LaneAnswer = z.infer<typeof LaneAnswer>;

/** Orchestrator → worker: these results, received as answers to offers, are recorded or no longer needed. */
export const LaneRecordings = wireObject({ v: SchemaVersion, keys: z.array(z.string()) });
export type LaneRecordings = z.infer<typeof LaneRecordings>;

/** Keys contain the epoch: the same attempt may run again under the next epoch, with another result. */
export const laneRecordingKey = (
  instanceId: string,
  { execution, of, attempt, epoch = 0 }: Pick<ActivityReport, "execution" | "of" | "attempt" | "epoch">,
): string => `${instanceId}.${execution}.${of}.${attempt}.${epoch}`;

/** Calls of one session by the lane, in order: all of them are taken or none. */
export const LaneCalls = wireObject({
  v: SchemaVersion,
  calls: z.array(SessionCall).min(1),
});
export type LaneCalls = z.infer<typeof LaneCalls>;

/** Worker → orchestrator on its lane: the worker took this task and cannot finish it. */
export const LaneReturn = wireObject({
  v: SchemaVersion,
  ...TaskAttempt,
  /** Sent to a caller: the code of the call never began. @generation 2 */
  untouched: z.boolean().optional(),
  /** The task's (C1). @generation 2 */
  capability: z.string().optional(),
});
export type LaneReturn = z.infer<typeof LaneReturn>;

/** Orchestrator → workers: asks which of these tasks they still have. */
export const LaneQuestion = wireObject({
  v: SchemaVersion,
  tasks: z.array(wireObject({ instanceId: InstanceId, ...TaskAttempt })),
});
export type LaneQuestion = z.infer<typeof LaneQuestion>;

/** Indexes, in the question's list, of tasks that this worker does not have. */
export const LaneHoldings = wireObject({
  v: SchemaVersion,
  workerId: WorkerId,
  missing: z.array(z.int().nonnegative()),
  /** For all others, in the order of the question, derived from the task's; "" where it had none (C1). @generation 2 */
  capabilities: z.array(z.string()).optional(),
});
export type LaneHoldings = z.infer<typeof LaneHoldings>;

/** A chunk written with `ctx.stream.write`, on `streams.<instanceId>.<execution>.<of>`. */
export const StreamChunk = wireObject({
  v: SchemaVersion,
  attempt: z.int().positive(),
  /** Which run of that attempt: a redelivered task begins its stream anew. */
  run: z.int().positive(),
  /** From 0, gap-free within a run. */
  index: z.int().nonnegative(),
  at: z.number(),
  chunk: Payload,
  /** Derived from the task's (C1). @generation 2 */
  capability: z.string().optional(),
});
export type StreamChunk = z.infer<typeof StreamChunk>;

/** Reader of a stream → any orchestrator: may a chunk that shows this be believed (C1)? */
export const StreamCheck = wireObject({
  v: SchemaVersion,
  instanceId: InstanceId,
  ...TaskAttempt,
  run: z.int().positive(),
  capability: z.string().optional(),
});
export type StreamCheck = z.infer<typeof StreamCheck>;

/** The answer to `StreamCheck`. */
export const StreamChecked = wireObject({ v: SchemaVersion, believed: z.boolean() });
export type StreamChecked = z.infer<typeof StreamChecked>;

/** Sent to all workers on `cancels`: the result of this task is no longer needed. A hint that may be lost. */
export const CancelNotice = wireObject({
  instanceId: InstanceId,
  execution: z.int().positive(),
  of: EventId,
});
export type CancelNotice = z.infer<typeof CancelNotice>;

/** Sent to one worker on its control subject; the answer is `{"ok":true}`. */
export const WorkerControl = z.discriminatedUnion("kind", [wireObject({ kind: z.literal("drain") })]);
export type WorkerControl = z.infer<typeof WorkerControl>;

/** Child → parent, verb `child`. */
export const ChildReport = wireObject({
  v: SchemaVersion,
  execution: z.int().positive(),
  of: EventId,
  result: z.discriminatedUnion("kind", [
    wireObject({ kind: z.literal("completed"), output: Payload }),
    wireObject({ kind: z.literal("failed"), error: Failure }),
  ]),
});
export type ChildReport = z.infer<typeof ChildReport>;

/**
 * A durable schedule came due, verb `wake`. The turn handles all deadlines that are due. `of` 0: look at a
 * parked instance again.
 */
export const Wake = wireObject({
  v: SchemaVersion,
  execution: z.int().positive(),
  of: z.int().nonnegative(),
});
export type Wake = z.infer<typeof Wake>;

/** An operator's request to a worker or a session, with the reason. */
export const ControlRequest = wireObject({ reason: z.string().max(4096).optional() });
export type ControlRequest = z.infer<typeof ControlRequest>;

/** A session that waits for a worker, on `claims.<type>.<sessionId>`. */
export const SessionClaim = wireObject({
  v: SchemaVersion,
  instanceId: InstanceId,
  sessionId: SessionId,
  attachment: z.int().positive(),
  type: Name,
  config: Payload.optional(),
  requires: Requirements,
  buildId: z.string().optional(),
  resourceId: z.string().optional(),
  affinityKey: z.string(),
  /** As in the options of the session. @generation 2 */
  affinity: z.literal("chosen").optional(),
  /** The worker that parked this session, preferred by placement. @generation 2 */
  parkedBy: WorkerId.optional(),
  leaseTtlMs: z.int().optional(),
  idleTimeoutMs: z.int().nonnegative().optional(),
  metadata: z.record(z.string(), z.string()),
  /** For a bare session, which has no type to say it. Absent: 1. @generation 2 */
  concurrency: Concurrency.optional(),
  /**
   * `fail`: a worker that finds the quota reached reports that to the instance. Absent: the claim waits.
   * @generation 2
   */
  whenFull: z.literal("fail").optional(),
  restore: CheckpointRef.optional(),
  /** Blobs stored by code of earlier holders. Absent: none. @generation 2 */
  blobs: z.array(SessionBlob).optional(),
  /** The loss policy: unless it is absent or `fail`, a worker may give the session up to balance load. */
  onLost: OnLost.optional(),
  openedAt: z.number(),
  deadlineAt: z.number(),
  traceparent: z.string().optional(),
  /** Made by an orchestrator; the holder shows it with all it says about the session (C1). @generation 2 */
  capability: z.string().optional(),
});
export type SessionClaim = z.infer<typeof SessionClaim>;

/** Work for the holder of a session, on `sessions.<workerId>.<sessionId>`. Only `call` needs a slot. */
export const SessionWork = z.discriminatedUnion("kind", [
  SessionCall,
  wireObject({
    v: SchemaVersion,
    kind: z.literal("cancel"),
    epoch: Epoch,
    /**
     * The instance of the task: a granted session serves several instances. Absent: the instance that has
     * that event.
     */
    instanceId: InstanceId.optional(),
    execution: z.int().positive(),
    of: EventId,
  }),
  wireObject({ v: SchemaVersion, kind: z.literal("close"), epoch: Epoch, reason: z.string().optional() }),
  wireObject({
    v: SchemaVersion,
    kind: z.literal("evict"),
    epoch: Epoch.optional(),
    reason: z.string().optional(),
  }),
  /** The holder finishes running calls, saves a checkpoint if the type has one, and releases the session (S13). */
  wireObject({
    v: SchemaVersion,
    kind: z.literal("drain"),
    epoch: Epoch.optional(),
    reason: z.string().optional(),
  }),
  wireObject({ v: SchemaVersion, kind: z.literal("event"), name: Name, payload: Payload }),
]);
export type SessionWork = z.infer<typeof SessionWork>;

/** Worker or watcher → instance about a session, verb `session`. */
export const SessionReport = wireObject({
  v: SchemaVersion,
  sessionId: SessionId,
  attachment: z.int().positive(),
  /** The owner of the session, if it reports to a borrower or to a child with a grant. */
  owner: InstanceId.optional(),
  report: z.discriminatedUnion("kind", [
    wireObject({ kind: z.literal("claimed"), on: Attachment }),
    wireObject({
      kind: z.literal("activated"),
      on: Attachment,
      initMs: z.number(),
      warm: z.boolean(),
      restored: z.boolean(),
    }),
    wireObject({ kind: z.literal("init_failed"), error: Failure }),
    wireObject({
      kind: z.literal("lost"),
      epoch: Epoch.optional(),
      reason: LossReason,
      detail: z.string().optional(),
      /** Calls whose code was running, if the holder itself gives the session up. Absent: unknown. @generation 2 */
      running: z.array(RunningCall).optional(),
    }),
    wireObject({ kind: z.literal("parked"), epoch: Epoch }),
    wireObject({ kind: z.literal("checkpointed"), checkpoint: CheckpointRef }),
    /** Code inside the session changed its metadata. @generation 2 */
    wireObject({ kind: z.literal("metadata"), epoch: Epoch, change: MetadataChange }),
    /** Code inside the session stored bytes under a name, or deleted the name. @generation 2 */
    wireObject({ kind: z.literal("blob"), epoch: Epoch, name: z.string(), stored: SessionBlob.optional() }),
    /** A child that was granted this session has work for it while it is parked. */
    wireObject({ kind: z.literal("wanted") }),
    /** To a child that was granted the session: its owner closed it. */
    wireObject({ kind: z.literal("closed") }),
    /**
     * Sent to the instance that waits for a member of an exclusive pool: this member is lent to it under
     * `session.lending`.
     */
    wireObject({ kind: z.literal("lent"), session: SessionState }),
    /**
     * The session id was used before: attachments up to this one are spent, the instance asks again under the
     * next. @generation 2
     */
    wireObject({ kind: z.literal("spent"), upTo: z.int().positive() }),
    /** The session cannot be opened: another instance has the id, a quota is reached, or the resource is unknown. */
    wireObject({ kind: z.literal("refused"), error: Failure }),
  ]),
  /** The claim's, or the one for its loss, which is derived from it (C1). @generation 2 */
  capability: z.string().optional(),
});
export type SessionReport = z.infer<typeof SessionReport>;

/** The value of a session's lease key. */
export const LeaseValue = wireObject({
  v: SchemaVersion,
  holder: z.string(),
  /** The instance that is told of the expiry. Only on leases of sessions. */
  session: wireObject({
    instanceId: InstanceId,
    sessionId: SessionId,
    attachment: z.int().positive(),
    /** For whoever has to report the loss (C1). @generation 2 */
    lossCapability: z.string().optional(),
  }).optional(),
});
export type LeaseValue = z.infer<typeof LeaseValue>;

/** One of the numbered seats of a quota, in the lease bucket. It is taken while `holder` has the lease it names. */
export const QuotaSeat = wireObject({
  v: SchemaVersion,
  holder: z.string(),
  session: wireObject({
    instanceId: InstanceId,
    sessionId: SessionId,
    attachment: z.int().positive(),
  }),
  leaseTtlMs: z.int().min(1000),
});
export type QuotaSeat = z.infer<typeof QuotaSeat>;

/**
 * The state of an update, on `answers.<instanceId>.<updateId>`. A plain message: a client that missed it
 * sends the update again.
 */
export const UpdateAnswer = z.object({
  v: SchemaVersion,
  updateId: Name,
  /** `refused`: nothing of it was recorded. `failed`: its handler threw, or was cut off. */
  status: z.enum(["accepted", "completed", "failed", "refused"]),
  answer: Payload.optional(),
  error: Failure.optional(),
});
export type UpdateAnswer = z.infer<typeof UpdateAnswer>;

/** The caller's id of an update: applied once, however often it is sent. */
export const updateIdHeader = "Holdfast-Update-Id";

/** A message that was refused, on `dead.<what>.<id>`. */
export const DeadLetter = wireObject({
  v: SchemaVersion,
  what: z.string(),
  id: z.string(),
  subject: z.string(),
  reason: wireObject({ code: z.string(), message: z.string() }),
  at: z.number(),
  headers: z.record(z.string(), z.string()),
  /** The original body, base64: it may be anything. */
  body: z.string(),
});
export type DeadLetter = z.infer<typeof DeadLetter>;
