/** Schedules: orchestrations that are started by the clock. @generation 2 */
import { z } from "zod";
import { Name } from "./ids.ts";
import { wireObject } from "./wire-object.ts";

/** What becomes of a time that comes while an earlier run is still going on. */
export const Overlap = z.enum([
  "skip",
  "buffer-one",
  "buffer-all",
  "cancel-other",
  "terminate-other",
  "allow",
]);
export type Overlap = z.infer<typeof Overlap>;

/** Milliseconds, or `"250ms" "5s" "2m" "1h" "7d"`. */
const Span = z.union([z.int().nonnegative(), z.string().max(32)]);
/** Epoch milliseconds, or a date as ISO 8601. */
const Instant = z.union([z.int().nonnegative(), z.string().max(64)]);

/** As its user writes it, in every language. Exactly one of `cron`, `every` and `at`. */
export const ScheduleSpec = wireObject({
  /** What is started. */
  orchestration: Name,
  input: z.unknown().optional(),
  /** `minute hour day month weekday`, with seconds in front if you like. Several: whichever comes first. */
  cron: z.union([z.string().max(256), z.array(z.string().max(256)).min(1).max(20)]).optional(),
  /** IANA name for `cron`; UTC where absent. */
  timeZone: z.string().max(64).optional(),
  /** Every so long, counted from the epoch (or `offset` behind it), not from the creation. */
  every: Span.optional(),
  offset: Span.optional(),
  /** Once, or a few times. */
  at: z.union([Instant, z.array(Instant).min(1).max(1000)]).optional(),
  /** No time before this. */
  startAt: Instant.optional(),
  /** No time after this. */
  endAt: Instant.optional(),
  /** So many runs by the clock, then it is over. */
  limit: z.int().positive().optional(),
  /** Each time is put off by up to so much, always by the same for the same time. */
  jitter: Span.optional(),
  /** Default `skip`. */
  overlap: Overlap.optional(),
  /** A time that is over for longer (nobody was there to see to it) is let go. Default one hour. */
  catchUp: Span.optional(),
});
export type ScheduleSpec = z.infer<typeof ScheduleSpec>;
/** As people write it: names are plain text. */
export type ScheduleOptions = z.input<typeof ScheduleSpec>;

/** The instance that keeps a schedule, and the orchestration it runs. */
export const scheduleInstance = (scheduleId: string): string => `schedule-${scheduleId}`;
/** The schedule that an instance keeps. */
export const scheduleIdOf = (instanceId: string): string => instanceId.slice(scheduleInstance("").length);
/** The orchestration that keeps schedules. */
export const scheduleOrchestration = "holdfast-schedule";
/** Run ids are made of the schedule's id and a time. */
export const longestScheduleId = 96;

/** What a schedule's keeper is told. `token` makes a command that comes twice one command. */
export const scheduleSignal = "schedule";

const token = z
  .string()
  .min(1)
  .max(24)
  .regex(/^[A-Za-z0-9]+$/);
/** What the keeper of a schedule is told. */
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
  /** By the engine: a run is over. `taken`: its id belongs to somebody else's instance. */
  wireObject({ kind: z.literal("ended"), instanceId: z.string(), status: z.string() }),
]);
export type ScheduleCommand = z.infer<typeof ScheduleCommand>;

/** One run of a schedule. */
export const ScheduleRun = wireObject({
  instanceId: z.string(),
  /** Its time by the schedule; when it was asked for, where it was triggered. */
  at: z.number(),
});
export type ScheduleRun = z.infer<typeof ScheduleRun>;

/** A time that waits for an earlier run to end. */
const WaitingRun = wireObject({
  instanceId: z.string(),
  at: z.number(),
  overlap: Overlap,
  /** Comes by the clock, so the limit of runs counts it. */
  counts: z.boolean(),
});
export type WaitingRun = z.infer<typeof WaitingRun>;

/** The input of a keeper: what its creator says, and what goes along over continue-as-new. */
export const ScheduleInput = wireObject({
  spec: ScheduleSpec,
  paused: wireObject({ note: z.string().optional(), at: z.number() }).optional(),
  /** The latest time of the schedule that was seen to. */
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
  /** Absent: no time is to come. */
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
