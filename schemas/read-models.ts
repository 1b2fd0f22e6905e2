import { z } from "zod";
import { InstanceId, Name, SessionId, WorkerId } from "./ids.ts";
import { LossDetail, LossReason, OnLost } from "./loss.ts";
import { Failure, Parent, Payload, SchemaVersion } from "./payload.ts";
import { SessionBlob } from "./session.ts";
import { SessionPhaseKind } from "./session-phases.ts";
import { wireObject } from "./wire-object.ts";

/** The status of an instance. */
export const InstanceStatus = z.enum([
  /** Only signals arrived so far. */
  "pending",
  "running",
  /** The code disagrees with its history, or a turn could not finish: waits for a fixed deployment (T6, T9). */
  "parked",
  "completed",
  "failed",
  "cancelled",
  "terminated",
]);
export type InstanceStatus = z.infer<typeof InstanceStatus>;
/** The statuses of an instance that has ended. */
export const terminalStatuses: readonly InstanceStatus[] = ["completed", "failed", "cancelled", "terminated"];

/** KV `instances`: lists and results are answered from it. The engine decides nothing from it. */
export const InstanceSummary = wireObject({
  v: SchemaVersion,
  instanceId: InstanceId,
  name: Name.optional(),
  status: InstanceStatus,
  execution: z.int().nonnegative(),
  events: z.int().nonnegative(),
  startedAt: z.number().optional(),
  endedAt: z.number().optional(),
  updatedAt: z.number(),
  input: Payload.optional(),
  output: Payload.optional(),
  error: Failure.optional(),
  customStatus: Payload.optional(),
  parent: Parent.optional(),
  sessions: z.array(SessionId).optional(),
});
export type InstanceSummary = z.infer<typeof InstanceSummary>;

/** KV `sessions`: the register of sessions. The watcher reads it to find losses it missed (S5). */
export const SessionRecord = wireObject({
  v: SchemaVersion,
  sessionId: SessionId,
  instanceId: InstanceId,
  type: Name,
  phase: SessionPhaseKind,
  attachment: z.int().nonnegative(),
  epoch: z.int().positive().optional(),
  workerId: WorkerId.optional(),
  nodeId: z.string().optional(),
  host: z.string().optional(),
  resourceId: z.string().optional(),
  requires: wireObject({ tags: z.array(z.string()), resources: z.record(z.string(), z.number()) }),
  metadata: z.record(z.string(), z.string()),
  openedAt: z.number(),
  claimedAt: z.number().optional(),
  updatedAt: z.number(),
  deadlineAt: z.number().optional(),
  initMs: z.number().optional(),
  /** Set if the session has its own lease time. The watcher's grace period after an outage is as long (S14). */
  leaseTtlMs: z.int().min(1000).optional(),
  lost: wireObject({ reason: LossReason, detail: LossDetail.optional(), at: z.number() }).optional(),
  error: Failure.optional(),
  /** How often `init` made its state, and how often its rebuild activity was begun. @generation 2 */
  inits: z.int().nonnegative().optional(),
  rebuilds: z.int().nonnegative().optional(),
  /** Blobs that code inside the session stored. @generation 2 */
  blobs: z.array(SessionBlob).optional(),
  /** What the session does when its holder is lost. @generation 2 */
  onLost: OnLost.optional(),
  /** For the watcher, which reports a loss with it (C1). @generation 2 */
  lossCapability: z.string().optional(),
  /** The instance to which this member of an exclusive pool is lent. */
  lentTo: InstanceId.optional(),
  /** Past holders, latest last, bounded. */
  owners: z.array(
    wireObject({
      workerId: WorkerId,
      epoch: z.int().positive(),
      from: z.number(),
      to: z.number().optional(),
      end: z.string().optional(),
    }),
  ),
});
export type SessionRecord = z.infer<typeof SessionRecord>;

/** KV `workers`: one key per live worker process; it expires by its TTL. */
export const WorkerInfo = wireObject({
  v: SchemaVersion,
  workerId: WorkerId,
  nodeId: z.string(),
  host: z.string(),
  pid: z.int(),
  resourceId: z.string(),
  buildId: z.string(),
  startedAt: z.number(),
  seenAt: z.number(),
  draining: z.boolean(),
  tags: z.array(z.string()),
  resources: wireObject({
    total: z.record(z.string(), z.number()),
    used: z.record(z.string(), z.number()),
  }),
  activities: z.array(wireObject({ queue: Name, name: Name })),
  /** The acknowledgement wait that this worker extends in time for its running tasks. Absent: 10 s. @generation 2 */
  ackWaitMs: z.int().positive().optional(),
  sessionTypes: z.array(Name),
  slots: wireObject({
    activities: wireObject({ used: z.int(), max: z.int() }),
    calls: wireObject({ used: z.int(), max: z.int() }),
    sessions: wireObject({ used: z.int(), max: z.int() }),
  }),
  /** Per type: sessions held, and the most this worker takes. */
  perType: z.record(z.string(), wireObject({ used: z.int(), max: z.int() })),
  /** Sessions of the whole installation as this worker sees them, where they have a quota. */
  quotas: wireObject({
    all: wireObject({ used: z.int(), max: z.int() }).optional(),
    types: z.record(z.string(), wireObject({ used: z.int(), max: z.int() })),
  }).optional(),
  /** Members of each pool held by this worker: placement prefers another worker for the next one. */
  pools: z.record(z.string(), z.int()).optional(),
  /** Affinity keys whose state is warm here. */
  warm: z.array(z.string()),
  device: z.string().optional(),
  models: z.array(
    wireObject({
      name: z.string(),
      device: z.string(),
      loadMs: z.number(),
      bytes: z.number().optional(),
    }),
  ),
  rssBytes: z.number(),
  eventLoopDelayMs: z.number(),
  sessions: z.array(
    wireObject({
      sessionId: SessionId,
      type: Name,
      epoch: z.int().positive(),
      calls: z.int(),
      queued: z.int(),
      running: z.int(),
      since: z.number(),
      /** Calls that failed or took too long, since it was claimed. @generation 2 */
      errors: z.int().nonnegative().optional(),
      /** When a call last began or ended. Absent: never. @generation 2 */
      usedAt: z.number().optional(),
      /** Models its code loaded since it was claimed. @generation 2 */
      modelLoads: z.int().nonnegative().optional(),
      /** Memory of its host, where that is a process of its own. @generation 2 */
      hostBytes: z.number().optional(),
      snapshot: z.unknown().optional(),
      /**
       * The thread or process that hosts the session, which other sessions may share, and since when it has
       * not answered (it is asked every few seconds). Absent: inline, or not known. @generation 2
       */
      host: wireObject({ id: z.string(), silentSince: z.number().optional() }).optional(),
    }),
  ),
});
export type WorkerInfo = z.infer<typeof WorkerInfo>;

/** KV `services`: live orchestrators, watchers and gateways; entries expire by their TTL. */
export const ServiceInfo = wireObject({
  v: SchemaVersion,
  service: z.enum(["orchestrator", "watcher", "gateway"]),
  id: z.string(),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  startedAt: z.number(),
  seenAt: z.number(),
  acting: z.boolean().optional(),
  partitions: z.array(z.int()).optional(),
  /** JSON Schemas of inputs by orchestration name, for forms and documentation. */
  orchestrations: z.record(z.string(), z.unknown()).optional(),
  sessionTypes: z.array(z.string()).optional(),
  counters: z.record(z.string(), z.number()).optional(),
});
export type ServiceInfo = z.infer<typeof ServiceInfo>;
