/** Messages to instances from clients, children and schedules, and the answers to updates. */
import { z } from "zod";
import { EventId, Name } from "../ids.ts";
import { Failure, Payload, SchemaVersion } from "../payload.ts";
import { wireObject } from "../wire-object.ts";

/** Header on a signal: the sender's id of it. Sent twice to one instance it is one signal. */
export const messageIdHeader = "Holdfast-Message-Id";

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
 * A durable schedule came due, verb `wake`. The turn handles all deadlines that are due. `of` 0: try a parked
 * instance again.
 */
export const Wake = wireObject({
  v: SchemaVersion,
  execution: z.int().positive(),
  of: z.int().nonnegative(),
});
export type Wake = z.infer<typeof Wake>;

/**
 * The state of an update, on `answers.<instanceId>.<updateId>`. A plain message: a client that missed it
 * sends the update again.
 */
export const UpdateAnswer = z.object({
  v: SchemaVersion,
  updateId: Name,
  /** `refused`: nothing was recorded. `failed`: its handler threw, or the execution ended before the handler. */
  status: z.enum(["accepted", "completed", "failed", "refused"]),
  answer: Payload.optional(),
  error: Failure.optional(),
});
export type UpdateAnswer = z.infer<typeof UpdateAnswer>;

/** The caller's id of an update: applied once, however often it is sent. */
export const updateIdHeader = "Holdfast-Update-Id";
