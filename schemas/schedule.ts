/** Schedules: orchestrations that are started by the clock. @generation 2 */

import { z } from "zod";
import { Name } from "./ids.ts";
import { Span } from "./span.ts";
import { wireObject } from "./wire-object.ts";

/** What happens at a time of the schedule while an earlier run has not ended. */
export const Overlap = z.enum([
  "skip",
  "buffer-one",
  "buffer-all",
  "cancel-other",
  "terminate-other",
  "allow",
]);
export type Overlap = z.infer<typeof Overlap>;

/** Epoch milliseconds, or a date as ISO 8601. */
const Instant = z.union([z.int().nonnegative(), z.string().max(64)]);

/** A schedule as users write it. Exactly one of `cron`, `every` and `at`. */
export const ScheduleSpec = wireObject({
  /** The orchestration to start. */
  orchestration: Name,
  input: z.unknown().optional(),
  /** `minute hour day month weekday`, optionally with seconds in front. With several, every time of each counts. */
  cron: z.union([z.string().max(256), z.array(z.string().max(256)).min(1).max(20)]).optional(),
  /** IANA name for `cron`; UTC where absent. */
  timeZone: z.string().max(64).optional(),
  /** The interval, counted from the epoch plus `offset`, not from the creation. */
  every: Span.optional(),
  offset: Span.optional(),
  /** Once, or a few times. */
  at: z.union([Instant, z.array(Instant).min(1).max(1000)]).optional(),
  /** No time before this. */
  startAt: Instant.optional(),
  /** No time after this. */
  endAt: Instant.optional(),
  /** The schedule ends after this many runs by the clock. */
  limit: z.int().positive().optional(),
  /** Each time is delayed by up to this long; the delay of a given time is always the same. */
  jitter: Span.optional(),
  /** Default `skip`. */
  overlap: Overlap.optional(),
  /** A time that was missed for longer than this, because no orchestrator ran, is skipped. Default one hour. */
  catchUp: Span.optional(),
});
export type ScheduleSpec = z.infer<typeof ScheduleSpec>;
/** The spec with names as plain text. */
export type ScheduleOptions = z.input<typeof ScheduleSpec>;

/** The instance that keeps a schedule, and the orchestration it runs. */
export const scheduleInstance = (scheduleId: string): string => `schedule-${scheduleId}`;
/** The schedule that an instance keeps. */
export const scheduleIdOf = (instanceId: string): string => instanceId.slice(scheduleInstance("").length);
/** The orchestration that keeps schedules. */
export const scheduleOrchestration = "holdfast-schedule";
/** Run ids are made of the schedule's id and a time. */
export const longestScheduleId = 96;

/** The signal by which a schedule's keeper receives commands. */
export const scheduleSignal = "schedule";

/** The keeper carries out a command once, even if two messages bring the same token. */
const token = z
  .string()
  .min(1)
  .max(24)
  .regex(/^[A-Za-z0-9]+$/);
/** A command to the keeper of a schedule. */
export const ScheduleCommand = z.discriminatedUnion("kind", [
  wireObject({ kind: z.literal("update"), spec: ScheduleSpec }),
  wireObject({ kind: z.literal("pause"), note: z.string().max(4096).optional() }),
  wireObject({ kind: z.literal("resume"), note: z.string().max(4096).optional() }),
  wireObject({ kind: z.literal("trigger"), token, overlap: Overlap.optional() }),
  wireObject({
    kind: z.literal("backfill"),
    /** Epoch milliseconds; both ends count. */
    from: z.int(),
    to: z.int(),
    overlap: Overlap.optional(),
  }),
  wireObject({ kind: z.literal("delete") }),
  /** Sent by the engine: a run ended. `taken`: another user's instance has its id. */
  wireObject({ kind: z.literal("ended"), instanceId: z.string(), status: z.string() }),
]);
export type ScheduleCommand = z.infer<typeof ScheduleCommand>;

/** One run of a schedule. */
export const ScheduleRun = wireObject({
  instanceId: z.string(),
  /** Its time in the schedule; for a triggered run, the time of the request. */
  at: z.number(),
});
export type ScheduleRun = z.infer<typeof ScheduleRun>;

/** A time that waits for an earlier run to end. */
const WaitingRun = wireObject({
  instanceId: z.string(),
  at: z.number(),
  overlap: Overlap,
  /** True for runs by the clock, which `limit` counts. */
  counts: z.boolean(),
});
/** A run that waits for an earlier run to end. */
export type WaitingRun = z.infer<typeof WaitingRun>;

/** The input of a keeper: the spec, and the state that continue-as-new carries over. */
export const ScheduleInput = wireObject({
  spec: ScheduleSpec,
  paused: wireObject({ note: z.string().optional(), at: z.number() }).optional(),
  /** The latest time of the schedule that the keeper has handled. */
  cursor: z.number().optional(),
  /** Runs by the clock so far: what `limit` counts. */
  runs: z.int().nonnegative().default(0),
  skipped: z.int().nonnegative().default(0),
  missed: z.int().nonnegative().default(0),
  running: z.array(ScheduleRun).default([]),
  waiting: z.array(WaitingRun).default([]),
  recent: z.array(ScheduleRun).default([]),
  /** Tokens of commands that were carried out. */
  tokens: z.array(z.string()).default([]),
  deleted: z.boolean().optional(),
});
export type ScheduleInput = z.infer<typeof ScheduleInput>;

/** The custom status of a keeper. */
export const ScheduleState = wireObject({
  /** Absent: the schedule has no further time. */
  next: z.number().optional(),
  runs: z.int(),
  skipped: z.int(),
  missed: z.int(),
  running: z.array(ScheduleRun),
  waiting: z.int(),
  recent: z.array(ScheduleRun),
  /** Why the latest command was refused. */
  error: z.string().optional(),
});
export type ScheduleState = z.infer<typeof ScheduleState>;
