/** Messages about sessions: claims, work for holders, reports about sessions, and the values of their keys. */
import { z } from "zod";
import { Epoch, EventId, InstanceId, Name, SessionId, WorkerId } from "../ids.ts";
import { LossReason, OnLost } from "../loss.ts";
import { Failure, Payload, SchemaVersion } from "../payload.ts";
import {
  Attachment,
  CheckpointRef,
  Concurrency,
  MetadataChange,
  Requirements,
  SessionBlob,
  SessionState,
} from "../session.ts";
import { wireObject } from "../wire-object.ts";
import { TaskAttempt } from "./task-attempt.ts";
import { ActivityTask } from "./task-messages.ts";

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

/** A call whose code had begun when its session was given up. */
export const RunningCall = z.strictObject({ instanceId: InstanceId, ...TaskAttempt });
export type RunningCall = z.infer<typeof RunningCall>;

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
  /** Made by an orchestrator; the holder sends it with every report about the session (C1). @generation 2 */
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
  /** The claim's capability; for a loss, the one derived from it (C1). @generation 2 */
  capability: z.string().optional(),
});
export type SessionReport = z.infer<typeof SessionReport>;

/** The value of a session's lease key. */
export const LeaseValue = wireObject({
  v: SchemaVersion,
  holder: z.string(),
  /** The instance to which the expiry is reported. Only on leases of sessions. */
  session: wireObject({
    instanceId: InstanceId,
    sessionId: SessionId,
    attachment: z.int().positive(),
    /** Shown by the process that reports the loss (C1). @generation 2 */
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
