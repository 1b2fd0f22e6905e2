import type { Failure, NewEvent, RetryPolicy } from "../../../schemas/index.ts";
import { backoffMs } from "../../runtime/index.ts";
import type { OpenTask } from "../fold/state.ts";

/** Decides what follows a failed attempt: another attempt, or the failure of the activity. */
export function attemptEnded(task: OpenTask, error: Failure, now: number): NewEvent[] {
  // Attempts that the loss of a session cut short have a limit of their own.
  const attempts = task.attempt - task.interruptions;
  if (!mayRetry(task.retry, attempts, error)) return [{ kind: "activity.failed", of: task.id, error }];
  const delay = backoffMs(
    { initialMs: task.retry.initialDelayMs, maxMs: task.retry.maxDelayMs, factor: task.retry.factor },
    attempts,
  );
  const retryAt = now + delay;
  const { scheduleToCloseMs } = task.timeouts;
  if (scheduleToCloseMs !== undefined && retryAt >= task.scheduledAt + scheduleToCloseMs) {
    return [{ kind: "activity.failed", of: task.id, error }];
  }
  // LOSS-1: recorded only where an older history would read the error as an interruption.
  const looksLost = task.target.kind === "session" && error.code === "session_lost";
  return [
    {
      ...{ kind: "activity.attempt_failed", of: task.id, attempt: task.attempt, error, retryAt },
      ...(looksLost && { interruption: "none" }),
    },
  ];
}

const mayRetry = (retry: RetryPolicy, attempt: number, error: Failure): boolean =>
  error.retryable && attempt < retry.maxAttempts && !retry.nonRetryable.includes(error.code);
