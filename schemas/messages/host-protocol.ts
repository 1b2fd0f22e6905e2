/**
 * The messages between a worker and a host process (docs/host-protocol.md). One message is one line of JSON;
 * raw bytes may follow it. Unknown fields are ignored; an unknown kind is a protocol error, because both ends
 * agreed on a version.
 */
import { z } from "zod";
import type { Failure } from "../payload.ts";

/** The protocol version of this build. A host announces its own when it is ready. */
export const hostProtocolVersion = 1;

const RequestId = z.int().positive().describe("Chosen by the worker; the answer has the same.");
const StateKey = z.string().min(1).describe("Names the state. A process has one at a time.");

/** An error as data. Unless the host says otherwise, it may be retried. */
export const HostFailure: z.ZodType<Failure, unknown> = z.object({
  code: z.string().min(1).max(128),
  message: z.string(),
  retryable: z.boolean().default(true),
  details: z.unknown().optional(),
  stack: z.string().optional(),
  get cause() {
    return HostFailure.optional();
  },
});

/** Raw byte sequences that follow the line, in this order. The JSON has null in place of each. */
export const Attachments = z
  .array(
    z.object({
      at: z
        .array(z.union([z.string(), z.int().nonnegative()]))
        .describe("The path to its place in the message."),
      size: z.int().nonnegative(),
    }),
  )
  .optional();
const bytes = Attachments;

/** The session a host is asked about. */
export const HostedSession = z.object({
  key: StateKey,
  id: z.string(),
  type: z.string(),
  epoch: z.int().describe("The fencing token of this holding."),
  attachment: z.int(),
  workerId: z.string(),
  host: z.string().optional().describe("The machine of the worker."),
  resourceId: z.string().optional().describe("What a token of this session names: a machine, a GPU, a disk."),
  metadata: z.record(z.string(), z.string()),
});

const Run = z
  .object({
    instanceId: z.string(),
    name: z.string(),
    attempt: z.int(),
    lastHeartbeat: z.unknown().optional().describe("The details of the last heartbeat of an attempt before."),
  })
  .describe("The task this run serves.");

const request = <K extends string>(kind: K) => ({ kind: z.literal(kind), id: RequestId, bytes });

/** From the worker to the host. */
export const ToHostMessage = z.discriminatedUnion("kind", [
  z.object({ ...request("init"), session: HostedSession, config: z.unknown().optional() }),
  z.object({
    ...request("restore"),
    session: HostedSession,
    config: z.unknown().optional(),
    state: z.unknown().describe("Bytes: what `checkpoint` answered before, here or elsewhere."),
  }),
  z.object({ ...request("call"), key: StateKey, name: z.string(), input: z.unknown().optional(), run: Run }),
  z.object({ ...request("batch"), key: StateKey, name: z.string(), inputs: z.array(z.unknown()), run: Run }),
  z.object({ ...request("checkpoint"), key: StateKey }),
  z.object({ ...request("snapshot"), key: StateKey }),
  z.object({ ...request("shutdown"), key: StateKey }),
  z.object({ ...request("adopt"), key: StateKey, session: HostedSession }),
  z.object({ kind: z.literal("cancel"), id: RequestId, reason: HostFailure }),
  z.object({
    kind: z.literal("event"),
    key: StateKey,
    name: z.string(),
    payload: z.unknown().optional(),
    bytes,
  }),
  z.object({ kind: z.literal("taken"), chunk: z.int(), error: HostFailure.optional() }),
  z.object({
    kind: z.literal("blob"),
    ask: z.int(),
    value: z.unknown().optional().describe("Bytes for `get`; absent if no blob has this name."),
    error: HostFailure.optional(),
    bytes,
  }),
  z.object({ kind: z.literal("ping"), n: z.int() }),
]);
export type ToHostMessage = z.infer<typeof ToHostMessage>;

const Level = z.enum(["debug", "info", "warn", "error"]);

/** One answer of a batch. */
export const BatchItem = z.union([
  z.object({ ok: z.literal(true), value: z.unknown().optional() }),
  z.object({ ok: z.literal(false), error: HostFailure }),
]);

/** From the host to the worker. `kind` and `id` come first, so that a message too long to read can still be answered. */
export const FromHostMessage = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("ready"),
    protocol: z.int().describe("The version the host speaks."),
    calls: z.array(z.string()).optional().describe("The calls the host answers, if it knows them."),
    library: z.string().optional(),
  }),
  z.object({ kind: z.literal("unable"), error: HostFailure }),
  z.object({ kind: z.literal("done"), id: RequestId, value: z.unknown().optional(), bytes }),
  z.object({ kind: z.literal("failed"), id: RequestId, error: HostFailure }),
  z.object({ kind: z.literal("heartbeat"), id: RequestId, details: z.unknown().optional() }),
  z.object({
    kind: z.literal("chunk"),
    id: RequestId,
    chunk: z.int().describe("Chosen by the host; `taken` has the same."),
    value: z.unknown().optional(),
    bytes,
  }),
  z.object({
    kind: z.literal("log"),
    id: RequestId.optional(),
    level: Level,
    message: z.string(),
    fields: z.record(z.string(), z.unknown()).optional(),
  }),
  z.object({
    kind: z.literal("model"),
    key: StateKey,
    model: z.object({
      name: z.string(),
      device: z.string(),
      loadMs: z.number(),
      bytes: z.int().nonnegative().optional(),
    }),
  }),
  z.object({
    kind: z.literal("metadata"),
    key: StateKey,
    change: z.record(z.string(), z.string().nullable()).describe("Names to set; null removes a name."),
  }),
  z.object({
    kind: z.literal("blob"),
    key: StateKey,
    ask: z.int().describe("Chosen by the host; the answer has the same."),
    do: z
      .enum(["put", "get", "delete", "list"])
      .describe("The operation on the blobs that the session keeps under names."),
    name: z.unknown().optional(),
    data: z.unknown().optional().describe("Bytes, for `put`."),
    bytes,
  }),
  z.object({ kind: z.literal("give-up"), key: StateKey, reason: z.string() }),
  z.object({ kind: z.literal("pong"), n: z.int(), rssBytes: z.int().nonnegative().optional() }),
]);
export type FromHostMessage = z.infer<typeof FromHostMessage>;
