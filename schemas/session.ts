import { z } from "zod";
import { Epoch, EventId, InstanceId, Name, SessionId, WorkerId } from "./ids.ts";
import { LossDetail, LossReason, OnLost } from "./loss.ts";
import { Failure, Payload } from "./payload.ts";
import { wireObject } from "./wire-object.ts";

/** The type token of a session that has no type of its own: affinity only. */
export const bareSessionType = "bare";

/** Requirements that a worker must meet: tags and resources. */
export const Requirements = wireObject({
  tags: z.array(z.string()).default([]),
  resources: z.record(z.string(), z.number().nonnegative()).default({}),
});
export type Requirements = z.infer<typeof Requirements>;

/** `slots`: as many as the holder has call slots for. */
export const Concurrency = z.union([z.int().positive(), z.literal("slots")]);
export type Concurrency = z.infer<typeof Concurrency>;

/** How many calls may run at a time, as a number. */
export const callsAtOnce = (concurrency: Concurrency = 1): number =>
  concurrency === "slots" ? Number.POSITIVE_INFINITY : concurrency;

/** Options of a session. The opener has merged the defaults of the type with those of this session. */
export const SessionOptions = wireObject({
  creationTimeoutMs: z.int().positive(),
  executionTimeoutMs: z.int().positive().optional(),
  /** Absent: the worker's default. 0: never. */
  idleTimeoutMs: z.int().nonnegative().optional(),
  leaseTtlMs: z.int().min(1000).optional(),
  onLost: OnLost,
  maxAutoRetries: z.int().nonnegative(),
  maxInitAttempts: z.int().positive(),
  rebuild: wireObject({ activity: Name, input: Payload }).optional(),
  requires: Requirements,
  buildId: z.string().optional(),
  /** The session must be held on this resource (recreated from a token). */
  resourceId: z.string().optional(),
  /** Prefer workers that hold this key warm; defaults to a digest of type and config. */
  affinityKey: z.string().optional(),
  /**
   * True if the user chose the key: a worker with the key warm is preferred as long as it has room. Absent:
   * while that worker is not overloaded. @generation 2
   */
  affinity: z.literal("chosen").optional(),
  lazy: z.boolean(),
  /** How many calls may run at a time, and in one batch. Absent: 1. @generation 2 */
  concurrency: Concurrency.optional(),
  maxBatch: z.int().positive().optional(),
  /** What the opening does while a quota is reached. Absent: it waits. @generation 2 */
  whenFull: z.literal("fail").optional(),
  metadata: z.record(z.string(), z.string()),
});
export type SessionOptions = z.infer<typeof SessionOptions>;

/** Names to set; null removes one. Names with the engine's prefix are refused. @generation 2 */
export const MetadataChange = z.record(z.string(), z.string().nullable());
export type MetadataChange = z.infer<typeof MetadataChange>;

/** Names the engine uses itself begin with this. */
export const ownMetadataPrefix = "holdfast-";

/** Metadata after a change. */
export function changedMetadata(
  before: Readonly<Record<string, string>>,
  change: Readonly<MetadataChange>,
): Record<string, string> {
  const after = new Map(Object.entries(before));
  for (const [name, value] of Object.entries(change)) {
    if (name.startsWith(ownMetadataPrefix)) continue;
    if (value === null) after.delete(name);
    else after.set(name, value);
  }
  return Object.fromEntries(after);
}

/** A blob that code inside a session stored under a name. @generation 2 */
export const SessionBlob = wireObject({
  name: z.string(),
  key: z.string(),
  bytes: z.int().nonnegative(),
  storedAt: z.number(),
});
export type SessionBlob = z.infer<typeof SessionBlob>;

/** A session's blobs after one was stored under a name, or the name was deleted. */
export const changedBlobs = (
  before: readonly SessionBlob[],
  name: string,
  stored: SessionBlob | undefined,
): SessionBlob[] => [...before.filter((blob) => blob.name !== name), ...(stored ? [stored] : [])];

/** The folder of a session's blobs in the blob store. */
export const sessionBlobsFolder = (sessionId: string): string => `session-blobs/${sessionId}/`;

/** The holder of a session: one attachment, one epoch, one worker process. */
export const Attachment = wireObject({
  attachment: z.int().positive(),
  epoch: Epoch,
  workerId: WorkerId,
  nodeId: z.string(),
  host: z.string(),
  resourceId: z.string(),
});
export type Attachment = z.infer<typeof Attachment>;

/** Identity and size of a pool. */
export const PoolSpec = wireObject({
  type: Name,
  config: Payload.optional(),
  min: z.int().nonnegative(),
  max: z.int().positive(),
  /** How long members stay after the last user has left. */
  lingerMs: z.int().nonnegative().optional(),
  /** `exclusive`: each user borrows a member. Absent: all users share all members. */
  sharing: z.literal("exclusive").optional(),
  /** One session of a key, the same for all users. @generation 2 */
  keyed: wireObject({ key: Name, configDigest: z.string(), onLost: OnLost }).optional(),
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

/** Identifies one use of a pool to its keeper. */
export const useOf = ({ instanceId, execution, of }: z.input<typeof Borrower>): string =>
  `${instanceId}-${execution}-${of}`;

/**
 * The borrower of a pool member. The number grows with every lending of the pool: work of an earlier lending
 * is stale, whatever its epoch.
 */
export const Lending = wireObject({
  poolId: Name,
  number: z.int().positive(),
  to: Borrower,
  /** The session is lent to several instances at once: a later lending makes no work stale. @generation 2 */
  shared: z.literal(true).optional(),
});
export type Lending = z.infer<typeof Lending>;

/** The instance that keeps a pool, and the orchestration it runs. */
export const poolInstance = (poolId: string): string => `pool-${poolId}`;
/** The orchestration that keeps pools. */
export const poolOrchestration = "holdfast-pool";
/** One call of a pool from outside, as an instance of its own. */
export const poolCallOrchestration = "holdfast-pool-call";
/** The orchestration that keeps exclusive pools. */
export const lenderOrchestration = "holdfast-lender";
/** The signal by which a pool's keeper receives commands. */
export const poolSignal = "pool";

/** The declared size of a pool. @generation 2 */
export const PoolBounds = wireObject({
  min: z.int().nonnegative(),
  max: z.int().positive(),
  lingerMs: z.int().nonnegative().optional(),
});
export type PoolBounds = z.infer<typeof PoolBounds>;

/** The declaration of a pool by the application, and changes by operators. @generation 2 */
export const PoolOrders = wireObject({
  declared: PoolBounds.optional(),
  resized: wireObject({ min: z.int(), max: z.int() }).optional(),
  paused: z.boolean().optional(),
});
export type PoolOrders = z.infer<typeof PoolOrders>;

/** A command to the keeper of a pool. */
export const PoolSignal = z.discriminatedUnion("kind", [
  wireObject({
    kind: z.literal("join"),
    /** One use of the pool: it joins once and leaves once. */
    user: z.string(),
    min: z.int(),
    max: z.int(),
    lingerMs: z.int().optional(),
    /** The borrower, if members are lent. */
    borrower: Borrower.optional(),
  }),
  wireObject({ kind: z.literal("leave"), user: z.string() }),
  /** Calls have waited too long: the keeper adds a member if the pool may grow. */
  wireObject({ kind: z.literal("grow"), waitedMs: z.number() }),
  /** Declared by the application: the pool is kept even while no instance uses it. @generation 2 */
  wireObject({ kind: z.literal("declare"), ...PoolBounds.shape }),
  /** Sent by operators; holds until the declaration changes. @generation 2 */
  wireObject({ kind: z.literal("resize"), min: z.int().nonnegative(), max: z.int().positive() }),
  /** No members until it is resumed; calls and borrowers wait. @generation 2 */
  wireObject({ kind: z.literal("pause") }),
  wireObject({ kind: z.literal("resume") }),
  /** The declaration is withdrawn. @generation 2 */
  wireObject({ kind: z.literal("forget") }),
]);
export type PoolSignal = z.infer<typeof PoolSignal>;

/** A session's saved state in the blob store, and its epoch. */
export const CheckpointRef = wireObject({
  key: z.string(),
  bytes: z.int().nonnegative(),
  epoch: Epoch,
  calls: z.int().nonnegative(),
});
export type CheckpointRef = z.infer<typeof CheckpointRef>;

/** The life of a session as its instance knows it. See docs/sessions.md for the picture. */
export const SessionPhase = z.discriminatedUnion("kind", [
  /** No worker holds it and none is asked to: lazy before its first call, or parked after idling. */
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
    detail: LossDetail.optional(),
  }),
  wireObject({ kind: z.literal("failed"), error: Failure }),
  wireObject({ kind: z.literal("closed") }),
]);
export type SessionPhase = z.infer<typeof SessionPhase>;

/** A session as the history of its instance knows it. */
export const SessionState = wireObject({
  sessionId: SessionId,
  /** The instance that owns it; differs from the folding instance for a granted session. */
  owner: InstanceId,
  type: Name,
  config: Payload.optional(),
  options: SessionOptions,
  openedAt: z.number(),
  attachments: z.int().nonnegative(),
  /** Number of attachments of earlier sessions under this id. Absent: 0. @generation 2 */
  attachmentsBefore: z.int().nonnegative().optional(),
  initFailures: z.int().nonnegative(),
  phase: SessionPhase,
  /** How long the latest `init` took. */
  initMs: z.number().optional(),
  /** How often `init` made its state. If above 1, earlier states are gone. @generation 2 */
  inits: z.int().nonnegative().optional(),
  /** How often its rebuild activity was begun. Absent: never. @generation 2 */
  rebuilds: z.int().nonnegative().optional(),
  /** The worker that parked it; removed when a worker holds the session again. @generation 2 */
  parkedBy: WorkerId.optional(),
  /** The latest loss, also after another worker claimed the session: one turn may record both. */
  lastLost: wireObject({
    reason: LossReason,
    detail: LossDetail.optional(),
    at: z.number(),
    epoch: Epoch.optional(),
  }).optional(),
  checkpoint: CheckpointRef.optional(),
  /** Absent: none. @generation 2 */
  blobs: z.array(SessionBlob).optional(),
  /** Set while the session is lent, in the state of its owner and of its borrower. */
  lending: Lending.optional(),
  /** In the owner's state: all current borrowers (`lending.shared`). @generation 2 */
  borrowers: z.array(Borrower).optional(),
});
export type SessionState = z.infer<typeof SessionState>;
