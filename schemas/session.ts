import { z } from "zod";
import { Epoch, EventId, InstanceId, Name, SessionId, WorkerId } from "./ids.ts";
import { Failure, Payload } from "./payload.ts";
import { wireObject } from "./wire-object.ts";

/** The type token of a session that has no type of its own: affinity only. */
export const bareSessionType = "bare";

export const LossReason = z.enum([
  "expired",
  "aborted",
  "drained",
  "evicted",
  "idle",
  "hung",
  "crashed",
  "recycled",
  "execution_timeout",
]);
export type LossReason = z.infer<typeof LossReason>;

export const Requirements = wireObject({
  tags: z.array(z.string()).default([]),
  resources: z.record(z.string(), z.number().nonnegative()).default({}),
});
export type Requirements = z.infer<typeof Requirements>;

export const OnLost = z.enum(["fail", "reclaim", "rebuild", "restore"]);
export type OnLost = z.infer<typeof OnLost>;

/** `slots`: as many as the holder has call slots for. */
export const Concurrency = z.union([z.int().positive(), z.literal("slots")]);
export type Concurrency = z.infer<typeof Concurrency>;

export const callsAtOnce = (concurrency: Concurrency = 1): number =>
  concurrency === "slots" ? Number.POSITIVE_INFINITY : concurrency;

/** How a session behaves, after defaults of worker, type and single session were merged by the opener. */
export const SessionOptions = wireObject({
  creationTimeoutMs: z.int().positive(),
  executionTimeoutMs: z.int().positive().optional(),
  /** Absent: the worker's own default holds. 0: never. */
  idleTimeoutMs: z.int().nonnegative().optional(),
  leaseTtlMs: z.int().min(1000).optional(),
  onLost: OnLost,
  maxAutoRetries: z.int().nonnegative(),
  maxInitAttempts: z.int().positive(),
  rebuild: wireObject({ activity: Name, input: Payload }).optional(),
  requires: Requirements,
  buildId: z.string().optional(),
  /** Only this resource will do (recreate from a token). */
  resourceId: z.string().optional(),
  /** Prefer workers that hold this key warm; defaults to a digest of type and config. */
  affinityKey: z.string().optional(),
  /** Somebody chose the key: it attracts for as long as there is room. Absent: while its worker is not overloaded. @generation 2 */
  affinity: z.literal("chosen").optional(),
  lazy: z.boolean(),
  /** How many calls may run at a time, and in one batch. Absent: 1. @generation 2 */
  concurrency: Concurrency.optional(),
  maxBatch: z.int().positive().optional(),
  metadata: z.record(z.string(), z.string()),
});
export type SessionOptions = z.infer<typeof SessionOptions>;

/** Who holds a session: one attachment, one epoch, one worker incarnation. */
export const Attachment = wireObject({
  attachment: z.int().positive(),
  epoch: Epoch,
  workerId: WorkerId,
  nodeId: z.string(),
  host: z.string(),
  resourceId: z.string(),
});
export type Attachment = z.infer<typeof Attachment>;

/** What makes two pools the same pool, and how big it may get. */
export const PoolSpec = wireObject({
  type: Name,
  config: Payload.optional(),
  min: z.int().nonnegative(),
  max: z.int().positive(),
  /** How long members stay after the last user has left. */
  lingerMs: z.int().nonnegative().optional(),
  /** Each user has a member for himself. Absent: all share all members. */
  sharing: z.literal("exclusive").optional(),
});
export type PoolSpec = z.infer<typeof PoolSpec>;

/** Metadata key that makes a session a member of the pool it names: it takes the pool's calls from the pool's queue. */
export const poolMetadataKey = "holdfast-pool";

/** Metadata key, set to `exclusive` on members that are lent: they take calls from their borrower, from no queue. */
export const sharingMetadataKey = "holdfast-sharing";

/** One use of an exclusive pool: the `pool.joined` of an instance. */
export const Borrower = wireObject({
  instanceId: InstanceId,
  execution: z.int().positive(),
  of: EventId,
});
export type Borrower = z.infer<typeof Borrower>;

/** What a pool's keeper calls one use of its pool. */
export const useOf = ({ instanceId, execution, of }: z.input<typeof Borrower>): string =>
  `${instanceId}-${execution}-${of}`;

/** Who has a member for himself. Numbers of a pool only grow: work of an earlier lending is stale, whatever its epoch. */
export const Lending = wireObject({ poolId: Name, number: z.int().positive(), to: Borrower });
export type Lending = z.infer<typeof Lending>;

/** The instance that keeps a pool, and the orchestration it runs. */
export const poolInstance = (poolId: string): string => `pool-${poolId}`;
export const poolOrchestration = "holdfast-pool";
/** What it runs where members are lent. */
export const lenderOrchestration = "holdfast-lender";
/** What a pool's keeper is told. */
export const poolSignal = "pool";

export const PoolSignal = z.discriminatedUnion("kind", [
  wireObject({
    kind: z.literal("join"),
    /** One use of the pool: it joins once and leaves once. */
    user: z.string(),
    min: z.int(),
    max: z.int(),
    lingerMs: z.int().optional(),
    /** Where members are lent: whom to. */
    borrower: Borrower.optional(),
  }),
  wireObject({ kind: z.literal("leave"), user: z.string() }),
  /** Calls waited too long: one more member, if it may. */
  wireObject({ kind: z.literal("grow"), waitedMs: z.number() }),
]);
export type PoolSignal = z.infer<typeof PoolSignal>;

export const CheckpointRef = wireObject({
  key: z.string(),
  bytes: z.int().nonnegative(),
  epoch: Epoch,
  calls: z.int().nonnegative(),
});
export type CheckpointRef = z.infer<typeof CheckpointRef>;

/** The life of a session as its instance knows it. See docs/sessions.md for the picture. */
export const SessionPhase = z.discriminatedUnion("kind", [
  /** Nobody holds it and nobody is asked to: lazy before its first call, or parked after idling. */
  wireObject({ kind: z.literal("parked") }),
  wireObject({ kind: z.literal("opening"), attachment: z.int().positive(), deadlineAt: z.number() }),
  wireObject({ kind: z.literal("claimed"), on: Attachment, deadlineAt: z.number() }),
  wireObject({ kind: z.literal("active"), on: Attachment }),
  /** The rebuild activity of this attachment is running; other calls wait for it. */
  wireObject({ kind: z.literal("rebuilding"), on: Attachment, of: z.int().positive() }),
  wireObject({
    kind: z.literal("lost"),
    on: Attachment.optional(),
    reason: LossReason,
    detail: z.string().optional(),
  }),
  wireObject({ kind: z.literal("failed"), error: Failure }),
  wireObject({ kind: z.literal("closed") }),
]);
export type SessionPhase = z.infer<typeof SessionPhase>;

export const SessionState = wireObject({
  sessionId: SessionId,
  /** The instance that owns it; differs from the folding instance for a granted session. */
  owner: InstanceId,
  type: Name,
  config: Payload.optional(),
  options: SessionOptions,
  openedAt: z.number(),
  attachments: z.int().nonnegative(),
  /** How many of these the id had before this session was opened. Absent: 0. @generation 2 */
  attachmentsBefore: z.int().nonnegative().optional(),
  initFailures: z.int().nonnegative(),
  phase: SessionPhase,
  /** How long the latest `init` took. */
  initMs: z.number().optional(),
  /** How often `init` made its state. Above 1 what an earlier state held is gone. @generation 2 */
  inits: z.int().nonnegative().optional(),
  /** Set while it is parked and until it is held again: the worker that parked it. @generation 2 */
  parkedBy: WorkerId.optional(),
  /** The latest loss, also after somebody else took it: one turn may lose and ask again. */
  lastLost: wireObject({
    reason: LossReason,
    detail: z.string().optional(),
    at: z.number(),
    epoch: Epoch.optional(),
  }).optional(),
  checkpoint: CheckpointRef.optional(),
  /** Set while it is lent, on its owner's side and on the borrower's. */
  lending: Lending.optional(),
});
export type SessionState = z.infer<typeof SessionState>;
