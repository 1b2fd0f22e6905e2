/** The deadlines of a task: how long it may wait, and how long it may run. */
import type { Failure } from "../../../schemas/index.ts";
import type { OpenTask } from "../fold/state.ts";

/**
 * The worker enforces start-to-close itself and reports it; the engine enforces it for a worker that died.
 */
const startToCloseGraceMs = 1000;

interface TaskDeadline {
  at: number;
  timeout: "schedule_to_close" | "schedule_to_start" | "start_to_close";
  ms: number;
}

/** A local activity has none: the process that runs it enforces its time, and needs no schedule for that. */
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
 * True if one of these deadlines ended the task, and not a worker, which would know of the end. Derived from
 * what is recorded anyway, so that it works for every history.
 */
export function isOverdue(task: OpenTask, { code, details }: Failure, at: number): boolean {
  if (code !== "timeout" || typeof details !== "object" || details === null) return false;
  return taskDeadlines(task).some(
    (deadline) => deadline.at <= at && "timeout" in details && details.timeout === deadline.timeout,
  );
}

/** The earliest deadline, if there is one. It changes when the task starts, and with every attempt. */
export function nextTaskDeadline(task: OpenTask): number | undefined {
  const times = taskDeadlines(task).map((deadline) => deadline.at);
  return times.length === 0 ? undefined : Math.min(...times);
}
