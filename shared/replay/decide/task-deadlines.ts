/** When a task has waited or run too long. */
import type { Failure } from "../../../schemas/index.ts";
import type { OpenTask } from "../fold/state.ts";

/** The worker enforces start-to-close itself and reports it; the engine steps in for a worker that died. */
const startToCloseGraceMs = 1000;

export interface TaskDeadline {
  at: number;
  timeout: "schedule_to_close" | "schedule_to_start" | "start_to_close";
  ms: number;
}

/** None of a local activity: whoever runs it sees to its time, and it needs no schedule for that. */
export function taskDeadlines(task: OpenTask): TaskDeadline[] {
  if (task.target.kind === "local") return [];
  const { scheduleToCloseMs, scheduleToStartMs, startToCloseMs } = task.timeouts;
  const deadlines: TaskDeadline[] = [];
  if (scheduleToCloseMs !== undefined) {
    deadlines.push({
      at: task.scheduledAt + scheduleToCloseMs,
      timeout: "schedule_to_close",
      ms: scheduleToCloseMs,
    });
  }
  if (scheduleToStartMs !== undefined && task.startedAt === undefined) {
    deadlines.push({
      at: task.readyAt + scheduleToStartMs,
      timeout: "schedule_to_start",
      ms: scheduleToStartMs,
    });
  }
  if (startToCloseMs !== undefined && task.startedAt !== undefined) {
    const at = task.startedAt + startToCloseMs + startToCloseGraceMs;
    deadlines.push({ at, timeout: "start_to_close", ms: startToCloseMs });
  }
  return deadlines;
}

/**
 * Whether it was one of these that ended it, and not a worker, who would know of the end. Told from what is recorded
 * anyway, so that it is the same for every history.
 */
export function isOverdue(task: OpenTask, { code, details }: Failure, at: number): boolean {
  if (code !== "timeout" || typeof details !== "object" || details === null) return false;
  return taskDeadlines(task).some(
    (deadline) => deadline.at <= at && "timeout" in details && details.timeout === deadline.timeout,
  );
}

/** The earliest, if there is any. It moves: when the task starts, and with every attempt. */
export function nextTaskDeadline(task: OpenTask): number | undefined {
  const times = taskDeadlines(task).map((deadline) => deadline.at);
  return times.length === 0 ? undefined : Math.min(...times);
}
