/** Messages about activities: the tasks that orchestrators send, and what workers report of them. */
import { z } from "zod";
import { ActivityTimeouts } from "../events.ts";
import { Epoch, EventId, InstanceId, Name, WorkerId } from "../ids.ts";
import { Failure, Payload, SchemaVersion } from "../payload.ts";
import { wireObject } from "../wire-object.ts";
import { TaskAttempt } from "./task-attempt.ts";

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
  /** Timeouts of this attempt: schedule-to-start and the rest of schedule-to-close count from `scheduledAt`. */
  timeouts: ActivityTimeouts,
  /** True if the worker must report the start of the run, because a timeout counts from it. */
  reportStart: z.boolean(),
  traceparent: z.string().optional(),
  /**
   * Made by an orchestrator; the worker that runs the task sends it with every report (C1). @generation 2
   */
  capability: z.string().optional(),
  /** Key of the heartbeat details, the same for all attempts. Absent: see `detailsKey`. @generation 2 */
  detailsKey: z.string().optional(),
});
export type ActivityTask = z.infer<typeof ActivityTask>;

/** A worker's report to an instance about one attempt, verb `activity`. */
export const ActivityReport = wireObject({
  v: SchemaVersion,
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
  workerId: WorkerId,
  /** The epoch under which the session ran the work; absent for plain activities. */
  epoch: Epoch.optional(),
  result: z.discriminatedUnion("kind", [
    wireObject({ kind: z.literal("started") }),
    wireObject({ kind: z.literal("completed"), output: Payload }),
    wireObject({ kind: z.literal("failed"), error: Failure }),
    /** The user's state for a bare session is gone: the session's recovery policy decides, not the retry policy. */
    wireObject({ kind: z.literal("state_missing"), message: z.string() }),
  ]),
  /** The task's capability, or one derived from it (C1). @generation 2 */
  capability: z.string().optional(),
});
export type ActivityReport = z.infer<typeof ActivityReport>;

/** A chunk written with `ctx.stream.write`, on `streams.<instanceId>.<execution>.<of>`. */
export const StreamChunk = wireObject({
  v: SchemaVersion,
  attempt: z.int().positive(),
  /** Which run of that attempt: a redelivered task begins its stream anew. */
  run: z.int().positive(),
  /** From 0, gap-free within a run. */
  index: z.int().nonnegative(),
  at: z.number(),
  chunk: Payload,
  /** Derived from the task's capability (C1). @generation 2 */
  capability: z.string().optional(),
});
export type StreamChunk = z.infer<typeof StreamChunk>;

/** Sent by the reader of a stream to any orchestrator: is the capability on this chunk genuine (C1)? */
export const StreamCheck = wireObject({
  v: SchemaVersion,
  instanceId: InstanceId,
  ...TaskAttempt,
  run: z.int().positive(),
  capability: z.string().optional(),
});
export type StreamCheck = z.infer<typeof StreamCheck>;

/** The answer to `StreamCheck`. */
export const StreamChecked = wireObject({ v: SchemaVersion, believed: z.boolean() });
export type StreamChecked = z.infer<typeof StreamChecked>;

/** Sent to all workers on `cancels`: the result of this task is no longer needed. A hint that may be lost. */
export const CancelNotice = wireObject({
  instanceId: InstanceId,
  execution: z.int().positive(),
  of: EventId,
  /** Derived from the capability of the attempt, so that workers believe nobody else (C1). @generation 2 */
  capability: z.string().optional(),
});
export type CancelNotice = z.infer<typeof CancelNotice>;
