/**
 * Attempts that were cut short because their session was lost under them.
 *
 * LOSS-1 Only the engine interrupts, and only tasks on sessions. An error of the user's own with the code
 *    `session_lost` is a failed attempt like any other.
 * LOSS-2 An interruption counts against a call only if the call may have begun: a call that waited in the
 *    holder's queue is not to blame for what the call before it did. Planned losses count against no call.
 * LOSS-3 A call that was interrupted `maxAutoRetries` times and once more fails alone, as `poisoned`.
 * LOSS-4 Where calls run in order, a call under suspicion is sent alone: a loss during that call is surely
 *    its doing.
 */
import {
  type Attachment,
  callsAtOnce,
  type Failure,
  type LossReason,
  lossReasons,
  type NewEvent,
  type RunningCall,
  type SessionState,
} from "../../../schemas/index.ts";
import { type InstanceState, type OpenTask, sessionTasks } from "../fold/state.ts";
import { poisonedFailure } from "./failures.ts";

export const failed = (task: OpenTask, error: Failure): NewEvent => ({
  kind: "activity.failed",
  of: task.id,
  error,
});

export const interrupted = (
  task: OpenTask,
  error: Failure,
  now: number,
  interruption: "free" | "counted",
): NewEvent => ({
  ...{ kind: "activity.attempt_failed", of: task.id, attempt: task.attempt },
  ...{ error, retryAt: now, interruption },
});

/** The consequence of a loss for each open task of a session that is requested again. */
export function outcomesOfLoss(
  state: InstanceState,
  session: SessionState,
  loss: { on: Attachment; reason: LossReason; error: Failure; running: readonly RunningCall[] | undefined },
  now: number,
): NewEvent[] {
  const { on, reason, error, running } = loss;
  const tasks = sessionTasks(state, session.sessionId);
  const begun = lossReasons[reason].planned ? new Set() : mayHaveBegun(state, session, tasks, on, running);
  return tasks.map((task) => {
    // The engine's own task of the old attachment ends with it; the next attachment gets its own.
    if (task.byEngine) return failed(task, error);
    if (!begun.has(task)) return interrupted(task, error, now, "free");
    const { maxAutoRetries } = session.options;
    if (task.strikes < maxAutoRetries) return interrupted(task, error, now, "counted");
    // Without retries there is no suspicion either: the caller wants the loss as an error.
    return failed(task, maxAutoRetries > 0 ? poisonedFailure(task.name, task.strikes + 1, error) : error);
  });
}

/**
 * A holder that gave up by itself reports which calls ran. For a holder that died, the calls sent to it first
 * count as begun.
 */
function mayHaveBegun(
  { instanceId, execution }: InstanceState,
  { options }: SessionState,
  tasks: readonly OpenTask[],
  on: Attachment,
  running: readonly RunningCall[] | undefined,
): ReadonlySet<OpenTask> {
  if (running) {
    const ran = running.filter((one) => one.instanceId === instanceId && one.execution === execution);
    return new Set(tasks.filter(({ id, attempt }) => ran.some((o) => o.of === id && o.attempt === attempt)));
  }
  const sent = tasks.filter(({ sentEpoch }) => sentEpoch === on.epoch);
  sent.sort((a, b) => (a.sentId ?? 0) - (b.sentId ?? 0) || a.id - b.id);
  return new Set(sent.slice(0, callsAtOnce(options.concurrency) * (options.maxBatch ?? 1)));
}
