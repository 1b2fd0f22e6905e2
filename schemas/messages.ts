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
  /** Of this attempt: what is left of schedule-to-close counts from `scheduledAt`, as schedule-to-start does. */
  timeouts: ActivityTimeouts,
  /** The orchestrator measures a timeout from the start of the run: tell it. */
  reportStart: z.boolean(),
  traceparent: z.string().optional(),
});
export type ActivityTask = z.infer<typeof ActivityTask>;

/** Worker → instance, verb `activity`. */
/** On a signal: what its sender calls it. Sent again to the same instance it is the same signal; to another, another. */
export const messageIdHeader = "Holdfast-Message-Id";

/** What a worker tells an instance about one attempt. */
export const ActivityReport = wireObject({
  v: SchemaVersion,
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
  workerId: WorkerId,
  /** The right under which a session's work was done; absent for plain activities. */
  epoch: Epoch.optional(),
  result: z.discriminatedUnion("kind", [
    wireObject({ kind: z.literal("started") }),
    wireObject({ kind: z.literal("completed"), output: Payload }),
    wireObject({ kind: z.literal("failed"), error: Failure }),
    /** The bare session's own state is gone: the session's recovery policy decides, not the retry policy. */
    wireObject({ kind: z.literal("state_missing"), message: z.string() }),
  ]),
});
export type ActivityReport = z.infer<typeof ActivityReport>;

/** A call for the holder of a session. */
export const SessionCall = wireObject({
  v: SchemaVersion,
  kind: z.literal("call"),
  epoch: Epoch,
  call: z.boolean(),
  task: ActivityTask,
  /** On a member that is lent: under which lending. What comes under an earlier one is dropped. */
  lending: z.int().positive().optional(),
});
export type SessionCall = z.infer<typeof SessionCall>;

/** Which attempt at which task. */
const TaskAttempt = {
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
};

/** A call whose code had begun when its session was given up. */
export const RunningCall = z.strictObject({ instanceId: InstanceId, ...TaskAttempt });
export type RunningCall = z.infer<typeof RunningCall>;

/** On work that came by the lane: the orchestrator whose lane its result goes to. */
export const laneOwnerHeader = "Holdfast-Owner";

/** On work in a queue that was out on the lane before and may have been begun there. */
export const laneBeforeHeader = "Holdfast-Lane-Before";

/** On several tasks in one message by the lane: how many. Without it the message is one task. */
export const laneTasksHeader = "Holdfast-Lane-Tasks";

/** Tasks of one activity by the lane, of any instances; each is taken or refused by itself. @generation 2 */
export const LaneTasks = wireObject({ v: SchemaVersion, tasks: z.array(ActivityTask).min(1) });
export type LaneTasks = z.infer<typeof LaneTasks>;

/** In this worker's hands. */
const LaneTaken = wireObject({ v: SchemaVersion, kind: z.literal("taken"), workerId: WorkerId });
/** In this worker's hands, and over already. */
const LaneDone = wireObject({
  v: SchemaVersion,
  kind: z.literal("done"),
  workerId: WorkerId,
  report: ActivityReport,
});
/** No slot, no such session: it has to go by the queue. */
const LaneRefused = wireObject({ v: SchemaVersion, kind: z.literal("refused") });

/** Answer to work and to reports on the lane. Only `taken` and `recorded` may be relied on. */
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
  /** In the history, with all that follows from it. */
  wireObject({ v: SchemaVersion, kind: z.literal("recorded") }),
  /** The instance is not with this orchestrator: it has to go by the inbox. */
  wireObject({ v: SchemaVersion, kind: z.literal("elsewhere") }),
]);
export type LaneAnswer = z.infer<typeof LaneAnswer>;

/** Orchestrator → worker: results it was told in answers to its offers are in the history, or not wanted any more. */
export const LaneRecordings = wireObject({ v: SchemaVersion, keys: z.array(z.string()) });
export type LaneRecordings = z.infer<typeof LaneRecordings>;

/** With the epoch: the same attempt may be made again under the next one, and that result is another. */
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

/** Worker → orchestrator on its lane: taken there and not to be finished here. */
export const LaneReturn = wireObject({
  v: SchemaVersion,
  ...TaskAttempt,
  /** To a caller: its code never began. @generation 2 */
  untouched: z.boolean().optional(),
});
export type LaneReturn = z.infer<typeof LaneReturn>;

/** Orchestrator → workers: do you still have these? */
export const LaneQuestion = wireObject({
  v: SchemaVersion,
  tasks: z.array(wireObject({ instanceId: InstanceId, ...TaskAttempt })),
});
export type LaneQuestion = z.infer<typeof LaneQuestion>;

/** Places in the question's list of what this worker does not have. */
export const LaneHoldings = wireObject({
  v: SchemaVersion,
  workerId: WorkerId,
  missing: z.array(z.int().nonnegative()),
});
export type LaneHoldings = z.infer<typeof LaneHoldings>;

/** What running work wrote with `ctx.stream.write`, on `streams.<instanceId>.<execution>.<of>`. */
export const StreamChunk = wireObject({
  v: SchemaVersion,
  attempt: z.int().positive(),
  /** Which run of that attempt: a redelivered task begins its stream anew. */
  run: z.int().positive(),
  /** From 0, gap-free within a run. */
  index: z.int().nonnegative(),
  at: z.number(),
  chunk: Payload,
});
export type StreamChunk = z.infer<typeof StreamChunk>;

/** To all workers on `cancels`: nobody waits for this task any more. A hint, it may be lost. */
export const CancelNotice = wireObject({
  instanceId: InstanceId,
  execution: z.int().positive(),
  of: EventId,
});
export type CancelNotice = z.infer<typeof CancelNotice>;

/** To one worker on its control subject, answered `{"ok":true}`. */
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

/** A durable schedule came due, verb `wake`. The turn looks at all deadlines that are due. `of` 0: just look again. */
export const Wake = wireObject({
  v: SchemaVersion,
  execution: z.int().positive(),
  of: z.int().nonnegative(),
});
export type Wake = z.infer<typeof Wake>;

/** Why an operator asks something of a worker or a session. */
export const ControlRequest = wireObject({ reason: z.string().max(4096).optional() });
export type ControlRequest = z.infer<typeof ControlRequest>;

/** Somebody is wanted for a session, on `claims.<type>.<sessionId>`. */
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
  /** Of a session without a type, whose holder knows it from nobody else. Absent: 1. @generation 2 */
  concurrency: Concurrency.optional(),
  /** `fail`: whoever finds its quota reached tells the instance so. Absent: the claim waits. @generation 2 */
  whenFull: z.literal("fail").optional(),
  restore: CheckpointRef.optional(),
  /** What code of earlier holders stored under names. Absent: nothing. @generation 2 */
  blobs: z.array(SessionBlob).optional(),
  /** Lets a worker hand a session over by giving it up; absent or `fail`: only when it must. */
  onLost: OnLost.optional(),
  openedAt: z.number(),
  deadlineAt: z.number(),
  traceparent: z.string().optional(),
});
export type SessionClaim = z.infer<typeof SessionClaim>;

/** To the holder of a session, on `sessions.<workerId>.<sessionId>`. Only `call` needs a slot. */
export const SessionWork = z.discriminatedUnion("kind", [
  SessionCall,
  wireObject({
    v: SchemaVersion,
    kind: z.literal("cancel"),
    epoch: Epoch,
    /** Whose task: a session that was granted serves several instances. Absent: whoever has that event. */
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
  /** Given up gently: what runs may finish, the state is saved where the type can (S13). */
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
  /** Set where the session's owner tells others that may use it. */
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
      /** Where the holder itself gives up: the calls whose code was running. Absent: nobody knows. @generation 2 */
      running: z.array(RunningCall).optional(),
    }),
    wireObject({ kind: z.literal("parked"), epoch: Epoch }),
    wireObject({ kind: z.literal("checkpointed"), checkpoint: CheckpointRef }),
    /** Code inside the session changed what is known of it. @generation 2 */
    wireObject({ kind: z.literal("metadata"), epoch: Epoch, change: MetadataChange }),
    /** Code inside the session stored bytes under a name, or deleted the name. @generation 2 */
    wireObject({ kind: z.literal("blob"), epoch: Epoch, name: z.string(), stored: SessionBlob.optional() }),
    /** A child that was granted this session has work for it while it is parked. */
    wireObject({ kind: z.literal("wanted") }),
    /** To a child that was granted the session: its owner closed it. */
    wireObject({ kind: z.literal("closed") }),
    /** To whoever waits for a member of an exclusive pool: this one is his. `session.lending` says under which right. */
    wireObject({ kind: z.literal("lent"), session: SessionState }),
    /** The id was used before: attachments up to this one are over, and it is asked for under the next. @generation 2 */
    wireObject({ kind: z.literal("spent"), upTo: z.int().positive() }),
    /** It cannot be had at all: id taken by another instance, quota reached, unknown resource. */
    wireObject({ kind: z.literal("refused"), error: Failure }),
  ]),
});
export type SessionReport = z.infer<typeof SessionReport>;

/** The value of a session's lease key. */
export const LeaseValue = wireObject({
  v: SchemaVersion,
  holder: z.string(),
  /** For sessions: whom to tell. Absent for partitions and services. */
  session: wireObject({
    instanceId: InstanceId,
    sessionId: SessionId,
    attachment: z.int().positive(),
  }).optional(),
});
export type LeaseValue = z.infer<typeof LeaseValue>;

/** One of the numbered seats of a quota, in the lease bucket. Taken for as long as `holder` has the lease it names. */
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

/** How an update stands, on `answers.<instanceId>.<updateId>`. A plain message: whoever missed it sends the update again. */
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

/** Everything refused, on `dead.<what>.<id>`. */
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
