/** Flow control: when a start may become an instance. @generation 2 */
import { z } from "zod";
import { InstanceId, Name } from "./ids.ts";
import { Payload, SchemaVersion } from "./payload.ts";
import { wireObject } from "./wire-object.ts";

/** Milliseconds, or `"250ms" "5s" "2m" "1h" "7d"`. */
const Span = z.union([z.int().nonnegative(), z.string().max(32)]);

/** What becomes of a start whose key has as many running as it may. */
export const OnBusy = z.enum(["queue", "reject", "replace", "cancel-running"]);
export type OnBusy = z.infer<typeof OnBusy>;

/** How long a key of flow control may be. */
export const longestFlowKey = 256;

/** As its user writes it. Starts of one key are seen to in the order they were accepted. */
export const FlowOptions = wireObject({
  key: z.string().min(1).max(longestFlowKey),
  /** At most so many of the key run at a time. */
  concurrency: z
    .union([z.int().positive(), wireObject({ limit: z.int().positive(), onBusy: OnBusy.optional() })])
    .optional(),
  /** One at a time, and a second one is rejected: `concurrency: {limit: 1, onBusy: "reject"}`. */
  singleton: z.boolean().optional(),
  /** So many starts in so long, `burst` of them at once (1); the others wait. */
  rate: wireObject({ limit: z.int().positive(), per: Span, burst: z.int().positive().optional() }).optional(),
  /** Starts when none has come for so long, the latest alone; `maxWait` after the first at the latest. */
  debounce: wireObject({ period: Span, maxWait: Span.optional() }).optional(),
  /** At most one start in so long; the others are left out. */
  throttle: wireObject({ period: Span }).optional(),
  /** Among those that wait: higher first. Default 0. */
  priority: z.int().min(-1000).max(1000).optional(),
  /** Among equals of a key these take turns: a tenant, a customer. */
  fairness: z.string().max(longestFlowKey).optional(),
});
export type FlowOptions = z.infer<typeof FlowOptions>;

/** The orchestration that keeps keys of flow control. */
export const flowOrchestration = "holdfast-flow";
/** Stands in for what was not started, so that its id tells why. */
export const leftOutOrchestration = "holdfast-left-out";
/** The signal its keeper listens to. */
export const flowSignal = "flow";
/** Keepers are few and shared by all keys: they are never over, and many starts share a commit. */
export const flowShards = 32;
/** The id of the instance that keeps a key of flow control. */
export const flowInstance = (shard: number | ""): string => `flow-${shard}`;

/** A start under limits, as its sender asks the keeper of its key for it. */
export const FlowRequest = wireObject({
  kind: z.literal("start"),
  instanceId: InstanceId,
  orchestration: Name,
  input: z.unknown().optional(),
  flow: FlowOptions,
  /** Where the start lies in the inbox: starts that wait are served in this order. */
  seq: z.int().positive().optional(),
  /** The sender heard nothing: what was decided before is sent once more. */
  again: z.boolean().optional(),
});
export type FlowRequest = z.infer<typeof FlowRequest>;

/** What the keeper of a key of flow control is told. */
export const FlowCommand = z.discriminatedUnion("kind", [
  FlowRequest,
  /** By the engine: a run is over. */
  wireObject({ kind: z.literal("ended"), instanceId: z.string(), status: z.string() }),
]);
export type FlowCommand = z.infer<typeof FlowCommand>;

/**
 * Orchestrator → the owner of a keeper, straight: a start that the sender holds, or the end of a run, which is answered
 * when it is recorded.
 */
export const FlowAsk = z.discriminatedUnion("kind", [
  wireObject({
    v: SchemaVersion,
    kind: z.literal("start"),
    /** The orchestrator that holds the start. */
    holder: z.string(),
    instanceId: InstanceId,
    /** The FlowRequest, as the keeper's. */
    request: Payload,
  }),
  wireObject({
    v: SchemaVersion,
    kind: z.literal("ended"),
    instanceId: InstanceId,
    status: z.string(),
    messageId: z.string(),
  }),
]);
export type FlowAsk = z.infer<typeof FlowAsk>;

/** The owner of a keeper → the orchestrator that holds a start: what the keeper has decided. */
export const FlowWord = wireObject({
  v: SchemaVersion,
  instanceId: InstanceId,
  word: z.enum(["go", "waiting", "left-out"]),
  /** The keeper is told of the end of the run. */
  followed: z.boolean().optional(),
});
export type FlowWord = z.infer<typeof FlowWord>;

/** The answer to either: the start is held and begins, the end is recorded. */
export const FlowReply = wireObject({ v: SchemaVersion, ok: z.boolean() });
export type FlowReply = z.infer<typeof FlowReply>;

const Waiting = wireObject({
  instanceId: z.string(),
  orchestration: z.string(),
  input: z.unknown().optional(),
  priority: z.number(),
  fairness: z.string(),
  /** In order of acceptance, over all keys of a keeper. */
  number: z.int(),
});
/** A start that flow control holds back. */
export type WaitingStart = z.infer<typeof Waiting>;

/** One key that has something running, waiting or to remember. */
export const FlowKeyState = wireObject({
  limit: z.int().optional(),
  running: z.array(z.string()).default([]),
  waiting: z.array(Waiting).default([]),
  /** Of the rate: when the next start would be free of any debt. */
  rate: wireObject({ intervalMs: z.number(), burst: z.int(), tat: z.number() }).optional(),
  /** The latest that waits for silence. */
  debounced: wireObject({
    start: Waiting,
    dueAt: z.number(),
    latestAt: z.number(),
    /** What becomes of it then, where as many run as may. */
    onBusy: OnBusy.optional(),
  }).optional(),
  throttledUntil: z.number().optional(),
  /** Starts since the oldest had its turn, and when each fairness group was served last. */
  sinceOldest: z.int().default(0),
  served: z.record(z.string(), z.int()).default({}),
});
export type FlowKeyState = z.infer<typeof FlowKeyState>;

/** The input of the keeper of a key of flow control. */
export const FlowInput = wireObject({
  keys: z.record(z.string(), FlowKeyState).default({}),
  accepted: z.int().default(0),
  started: z.int().default(0),
  leftOut: z.int().default(0),
  /** Ids of the latest requests: one that comes twice is one. */
  known: z.array(z.string()).default([]),
  /** Those of them that were left out, and how. */
  leftOutAs: z.record(z.string(), z.string()).default({}),
});
export type FlowInput = z.infer<typeof FlowInput>;
