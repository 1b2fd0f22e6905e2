/** Sessions that belong to a key instead of an instance, and the commands to their keepers. @generation 2 */
import { z } from "zod";
import { Epoch, Name, SessionId, WorkerId } from "./ids.ts";
import { OnLost } from "./loss.ts";
import { Payload } from "./payload.ts";
import { Borrower, type PoolSpec, poolInstance } from "./session.ts";
import { wireObject } from "./wire-object.ts";

/** The orchestration that keeps keys. */
export const keyedOrchestration = "holdfast-keyed";
/** A few keepers serve all keys: they never end, and one commit can hold many openings. */
export const keyedShards = 256;
/** The id of the instance that keeps a key. */
export const keyedInstance = (shard: number | string): string => `keyed-${shard}`;

/** Metadata of a keyed session: its key, and a digest of the config it was opened with. */
export const keyMetadataKey = "holdfast-key";
/** Metadata key with a digest of the config a keyed session was opened with. */
export const keyConfigMetadataKey = "holdfast-key-config";

/** Ends the id of a keyed session. Ids of pools end with hexadecimal digits only, so the two never collide. */
const keyedIdEnd = /-k(?<shard>[0-9a-f]{2})[0-9a-f]{22}$/;

/** The id of the instance that keeps this pool or this key. */
export function keeperOf(poolId: string): string {
  const shard = keyedIdEnd.exec(poolId)?.groups?.shard;
  return shard === undefined ? poolInstance(poolId) : keyedInstance(Number.parseInt(shard, 16));
}

/** `fail`: a call whose holder was lost fails. Otherwise it runs again on the next holder. */
export const KeyedOnLost = OnLost.exclude(["rebuild"]);
export type KeyedOnLost = z.infer<typeof KeyedOnLost>;

/** How to open the session of a key: type, config and options. */
export const KeyedSpec = wireObject({
  sessionId: SessionId,
  type: Name,
  key: Name,
  config: Payload.optional(),
  /** Two configs with the same digest are the same config. */
  configDigest: z.string(),
  onLost: KeyedOnLost,
  /** The session is closed after this long without use. */
  ttlMs: z.int().positive(),
});
export type KeyedSpec = z.infer<typeof KeyedSpec>;

/** A command to a keeper, sent as the signal `pool`. */
export const KeyedSignal = z.discriminatedUnion("kind", [
  wireObject({ kind: z.literal("open"), spec: KeyedSpec }),
  wireObject({ kind: z.literal("close"), sessionId: SessionId, reason: z.string().max(4096).optional() }),
  /** The instance that uses the session until it leaves. */
  wireObject({ kind: z.literal("join"), user: z.string(), borrower: Borrower, spec: KeyedSpec }),
  wireObject({ kind: z.literal("leave"), user: z.string() }),
]);
export type KeyedSignal = z.infer<typeof KeyedSignal>;

const KeyedUser = wireObject({ user: z.string(), borrower: Borrower, lent: z.boolean() });

/** The input of the keeper of a key. */
export const KeyedInput = wireObject({
  sessions: z.array(wireObject({ spec: KeyedSpec, users: z.array(KeyedUser).default([]) })).default([]),
  /** Ended uses: a `join` that arrives after its `leave` is ignored. */
  left: z.array(z.string()).default([]),
  lendings: z.int().default(0),
});
export type KeyedInput = z.infer<typeof KeyedInput>;

/** How to open the session, if the pool that an instance joins is a key. */
export const keyedSpecOf = (sessionId: string, pool: PoolSpec): KeyedSpec =>
  KeyedSpec.parse({
    sessionId,
    type: pool.type,
    key: pool.keyed?.key,
    config: pool.config,
    configDigest: pool.keyed?.configDigest,
    onLost: pool.keyed?.onLost,
    ttlMs: pool.lingerMs,
  });

/** A request on `session.<type>.<key>`. */
export const KeyedRequest = z.discriminatedUnion("do", [
  z.strictObject({
    do: z.literal("open"),
    config: z.unknown().optional(),
    onLost: KeyedOnLost.optional(),
    ttl: z.union([z.int().positive(), z.string().max(32)]).optional(),
    /** Checked before a session is opened. */
    call: z.string().max(256).optional(),
    input: z.unknown().optional(),
    /** Do not return the holder of this epoch: it answered that it no longer holds the session. */
    not: Epoch.optional(),
  }),
  z.strictObject({ do: z.literal("close"), reason: z.string().max(4096).optional() }),
  z.strictObject({ do: z.literal("describe") }),
]);
export type KeyedRequest = z.infer<typeof KeyedRequest>;

/** The answer to `open`: where to send calls of the key. `opening`: no worker holds the session yet, ask again. */
export const KeyedRoute = z.discriminatedUnion("state", [
  wireObject({ state: z.literal("opening"), sessionId: SessionId }),
  wireObject({
    state: z.literal("held"),
    sessionId: SessionId,
    workerId: WorkerId,
    epoch: Epoch,
    configDigest: z.string(),
    onLost: OnLost,
  }),
]);
export type KeyedRoute = z.infer<typeof KeyedRoute>;
/** Where the calls of a keyed session go while a worker holds it. */
export type HeldRoute = Extract<KeyedRoute, { state: "held" }>;

/**
 * Header on lane work sent by a client instead of an instance: the result goes to that client only, never to
 * an inbox.
 */
export const callerHeader = "Holdfast-Caller";
