/** Flow control: when a start may become an instance. @generation 2 */

import { z } from "zod";
import { InstanceId, Name } from "./ids.ts";
import { Payload, SchemaVersion } from "./payload.ts";
import { Span } from "./span.ts";
import { wireObject } from "./wire-object.ts";

/** What happens to a start if its key already has as many running instances as allowed. */
export const OnBusy = z.enum(["queue", "reject", "replace", "cancel-running"]);
export type OnBusy = z.infer<typeof OnBusy>;

/** How long a key of flow control may be. */
export const longestFlowKey = 256;

/** The options as users write them. Starts of one key are handled in the order in which they were accepted. */
export const FlowOptions = wireObject({
  key: z.string().min(1).max(longestFlowKey),
  /** At most this many instances of the key run at a time. */
  concurrency: z
    .union([z.int().positive(), wireObject({ limit: z.int().positive(), onBusy: OnBusy.optional() })])
    .optional(),
  /** One at a time, and a second one is rejected: `concurrency: {limit: 1, onBusy: "reject"}`. */
  singleton: z.boolean().optional(),
  /** At most `limit` starts per period, `burst` of them at once (default 1); the others wait. */
  rate: wireObject({ limit: z.int().positive(), per: Span, burst: z.int().positive().optional() }).optional(),
  /** Starts only the latest, after this long without another start, and at most `maxWait` after the first. */
  debounce: wireObject({ period: Span, maxWait: Span.optional() }).optional(),
  /** At most one start per period; the others are skipped. */
  throttle: wireObject({ period: Span }).optional(),
  /** Waiting starts with a higher priority go first. Default 0. */
  priority: z.int().min(-1000).max(1000).optional(),
  /** Waiting starts of equal priority take turns by this name, for example a tenant or a customer. */
  fairness: z.string().max(longestFlowKey).optional(),
});
export type FlowOptions = z.infer<typeof FlowOptions>;

/** The orchestration that keeps keys of flow control. */
export const flowOrchestration = "holdfast-flow";
/** Runs under the id of a start that was refused, so that the status of that id says why. */
export const leftOutOrchestration = "holdfast-left-out";
/** The signal by which a keeper receives commands. */
export const flowSignal = "flow";
/** The query by which a keeper says how many starts of each of its keys wait: `FlowWaiting`. */
export const flowWaitingQuery = "waiting";
/** A few keepers serve all keys: they never end, and one commit can hold many starts. */
export const flowShards = 32;
/** The id of the instance that keeps a key of flow control. */
export const flowInstance = (shard: number | ""): string => `flow-${shard}`;

/** The keys whose starts wait, most first. */
export const FlowWaiting = z.array(z.object({ key: z.string(), waiting: z.int() }));
export type FlowWaiting = z.infer<typeof FlowWaiting>;

/** A start under limits, as it is sent to the keeper of its key. */
export const FlowRequest = wireObject({
  kind: z.literal("start"),
  instanceId: InstanceId,
  orchestration: Name,
  input: z.unknown().optional(),
  flow: FlowOptions,
  /** Where the start lies in the inbox: starts that wait are served in this order. */
  seq: z.int().positive().optional(),
  /** The sender got no answer: the keeper sends its earlier decision once more. */
  again: z.boolean().optional(),
});
export type FlowRequest = z.infer<typeof FlowRequest>;

/** A command to the keeper of a flow-control key. */
export const FlowCommand = z.discriminatedUnion("kind", [
  FlowRequest,
  /** Sent by the engine: an instance ended. */
  wireObject({ kind: z.literal("ended"), instanceId: z.string(), status: z.string() }),
]);
export type FlowCommand = z.infer<typeof FlowCommand>;

/**
 * Sent by an orchestrator straight to the owner of a keeper: a start that the sender holds, or the end of a run. The
 * owner answers an end once it is recorded.
 */
export const FlowAsk = z.discriminatedUnion("kind", [
  wireObject({
    v: SchemaVersion,
    kind: z.literal("start"),
    /** The orchestrator that holds the start. */
    holder: z.string(),
    instanceId: InstanceId,
    /** The FlowRequest. If it is too large for a message, its blob belongs to the keeper. */
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

/** Sent by the owner of a keeper to the orchestrator that holds a start: the keeper's decision. */
export const FlowWord = wireObject({
  v: SchemaVersion,
  instanceId: InstanceId,
  word: z.enum(["go", "waiting", "left-out"]),
  /** The keeper gets a message when the run ends. */
  followed: z.boolean().optional(),
});
export type FlowWord = z.infer<typeof FlowWord>;

/** The answer to a FlowWord (`ok`: the start is held and begins) or to an end (`ok`: the end is recorded). */
export const FlowReply = wireObject({ v: SchemaVersion, ok: z.boolean() });
export type FlowReply = z.infer<typeof FlowReply>;

const Waiting = wireObject({
  instanceId: z.string(),
  orchestration: z.string(),
  input: z.unknown().optional(),
  priority: z.number(),
  fairness: z.string(),
  /** Counts accepted starts over all keys of the keeper. */
  number: z.int(),
});
/** A start that flow control holds back. */
export type WaitingStart = z.infer<typeof Waiting>;

/** The state of one key with running or waiting starts, or with a rate to remember. */
export const FlowKeyState = wireObject({
  limit: z.int().optional(),
  running: z.array(z.string()).default([]),
  waiting: z.array(Waiting).default([]),
  /** The rate limit: the time at which the whole burst is available again. */
  rate: wireObject({ intervalMs: z.number(), burst: z.int(), tat: z.number() }).optional(),
  /** The latest debounced start. */
  debounced: wireObject({
    start: Waiting,
    dueAt: z.number(),
    latestAt: z.number(),
    /** What happens to it then if as many instances run as allowed. */
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
  /** Ids of the latest requests: a request that arrives twice counts once. */
  known: z.array(z.string()).default([]),
  /** Requests among these that were left out, with the reason. */
  leftOutAs: z.record(z.string(), z.string()).default({}),
});
export type FlowInput = z.infer<typeof FlowInput>;
