/** Messages of the lane, which carries work straight to a live worker and its result back (LANE-1). */
import { z } from "zod";
import { InstanceId, WorkerId } from "../ids.ts";
import { SchemaVersion } from "../payload.ts";
import { wireObject } from "../wire-object.ts";
import { SessionCall } from "./session-messages.ts";
import { TaskAttempt } from "./task-attempt.ts";
import { ActivityReport, ActivityTask } from "./task-messages.ts";

/** Header on lane work: the orchestrator to whose lane the result goes. */
export const laneOwnerHeader = "Holdfast-Owner";

/** Header on queued work that was sent by the lane before and may have begun there. */
export const laneBeforeHeader = "Holdfast-Lane-Before";

/** On several tasks in one message by the lane: how many. Without it the message is one task. */
export const laneTasksHeader = "Holdfast-Lane-Tasks";

/** Tasks of one activity by the lane, of any instances; each is taken or refused by itself. @generation 2 */
export const LaneTasks = wireObject({ v: SchemaVersion, tasks: z.array(ActivityTask).min(1) });
export type LaneTasks = z.infer<typeof LaneTasks>;

/** This worker runs it. */
const LaneTaken = wireObject({ v: SchemaVersion, kind: z.literal("taken"), workerId: WorkerId });
/** This worker ran it; the report is part of the answer. */
const LaneDone = wireObject({
  v: SchemaVersion,
  kind: z.literal("done"),
  workerId: WorkerId,
  report: ActivityReport,
});
/** This worker has no slot, or does not hold the session: the orchestrator sends it by the queue. */
const LaneRefused = wireObject({ v: SchemaVersion, kind: z.literal("refused") });

/** The answer to work and to reports on the lane. Only `taken` and `recorded` are promises. */
export const LaneAnswer = z.discriminatedUnion("kind", [
  LaneTaken,
  LaneDone,
  LaneRefused,
  /** To several tasks in one message: one answer for each, in their order. @generation 2 */
  wireObject({
    v: SchemaVersion,
    kind: z.literal("several"),
    answers: z.array(z.discriminatedUnion("kind", [LaneTaken, LaneDone, LaneRefused])),
  }),
  /** The report is in the history, and its effects are published. */
  wireObject({ v: SchemaVersion, kind: z.literal("recorded") }),
  /** This orchestrator does not own the instance: the worker sends the report to the inbox. */
  wireObject({ v: SchemaVersion, kind: z.literal("elsewhere") }),
]);
export type LaneAnswer = z.infer<typeof LaneAnswer>;

/** Orchestrator → worker: these results, received as answers to offers, are recorded or no longer needed. */
export const LaneRecordings = wireObject({ v: SchemaVersion, keys: z.array(z.string()) });
export type LaneRecordings = z.infer<typeof LaneRecordings>;

/** Keys contain the epoch: the same attempt may run again under the next epoch, with another result. */
export const laneRecordingKey = (
  instanceId: string,
  { execution, of, attempt, epoch = 0 }: Pick<ActivityReport, "execution" | "of" | "attempt" | "epoch">,
): string => `${instanceId}.${execution}.${of}.${attempt}.${epoch}`;

/** Calls of one session by the lane, in order: all of them are taken or none. */
export const LaneCalls = wireObject({
  v: SchemaVersion,
  calls: z.array(SessionCall).min(1),
});
export type LaneCalls = z.infer<typeof LaneCalls>;

/** Worker → orchestrator on its lane: the worker took this task and cannot finish it. */
export const LaneReturn = wireObject({
  v: SchemaVersion,
  ...TaskAttempt,
  /** Sent to a caller: the code of the call never began. @generation 2 */
  untouched: z.boolean().optional(),
  /** The task's capability (C1). @generation 2 */
  capability: z.string().optional(),
});
export type LaneReturn = z.infer<typeof LaneReturn>;

/** Orchestrator → workers: asks which of these tasks they still have. */
export const LaneQuestion = wireObject({
  v: SchemaVersion,
  tasks: z.array(wireObject({ instanceId: InstanceId, ...TaskAttempt })),
});
export type LaneQuestion = z.infer<typeof LaneQuestion>;

/** Indexes, in the question's list, of tasks that this worker does not have. */
export const LaneHoldings = wireObject({
  v: SchemaVersion,
  workerId: WorkerId,
  missing: z.array(z.int().nonnegative()),
  /**
   * Capabilities of all other tasks, in the order of the question: each is derived from the task's own, "" for a task
   * without one (C1). @generation 2
   */
  capabilities: z.array(z.string()).optional(),
});
export type LaneHoldings = z.infer<typeof LaneHoldings>;
