/**
 * Attempts that were cut short because their session was lost under them.
 *
 * I1 Only the engine interrupts, and only tasks on sessions. An error of the user's own with the code `session_lost` is
 *    a failed attempt like any other.
 * I2 An interruption counts against a call only if the call may have begun: a call that waited in the holder's queue is
 *    not to blame for what the call before it did. Planned losses count against nobody.
 * I3 A call that was interrupted `maxAutoRetries` times and once more fails alone, as `poisoned`.
 * I4 Where calls run in order, a call under suspicion is sent alone: what is lost then is surely its doing.
 */
import {
  type Attachment,
  callsAtOnce,
  type Failure,
  type LossReason,
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

export const isPlanned = (reason: LossReason): boolean => reason === "drained" || reason === "recycled";

/** What a loss means for each open task of a session that is asked for again. */
export function fates(
  state: InstanceState,
  session: SessionState,
  loss: { on: Attachment; reason: LossReason; error: Failure; running: readonly RunningCall[] | undefined },
  now: number,
): NewEvent[] {
  const { on, reason, error, running } = loss;
  const tasks = sessionTasks(state, session.sessionId);
  const begun = isPlanned(reason) ? new Set() : mayHaveBegun(state, session, tasks, on, running);
  return tasks.map((task) => {
    // Engine work of the old attachment dies with it; the next attachment gets its own.
    if (task.byEngine) return failed(task, error);
    if (!begun.has(task)) return interrupted(task, error, now, "free");
    const { maxAutoRetries } = session.options;
    if (task.strikes < maxAutoRetries) return interrupted(task, error, now, "counted");
    // Without a retry there is no suspicion either: the caller asked to hear of the loss.
    return failed(task, maxAutoRetries > 0 ? poisonedFailure(task.name, task.strikes + 1, error) : error);
  });
}

/** A holder that gave up by itself says what ran. Of one that died, the calls it was sent first are taken to have run. */
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
