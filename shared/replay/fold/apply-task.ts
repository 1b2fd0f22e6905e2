/** Events of tasks: plain activities, calls on sessions, and the engine's own rebuilds. */
import type { EventOf } from "../../../schemas/index.ts";
import { isOverdue, nextTaskDeadline } from "../decide/task-deadlines.ts";
import type { Effect } from "./effects.ts";
import { holderOf, notifyGrantees, register, sendCall, sendWaiting, suspect } from "./session-effects.ts";
import type { InstanceState, OpenTask } from "./state.ts";

export function scheduled(state: InstanceState, event: EventOf<"activity.scheduled">, at: number): Effect[] {
  const task: OpenTask = {
    id: event.id,
    name: event.name,
    input: event.input,
    target: event.target,
    retry: event.retry,
    timeouts: event.timeouts,
    byEngine: event.by === "engine",
    scheduledAt: at,
    attempt: 1,
    readyAt: at,
    startedAt: undefined,
    sentEpoch: undefined,
    sentId: undefined,
    interruptions: 0,
    strikes: 0,
    lastError: undefined,
  };
  state.tasks.set(event.id, task);
  return [...handOut(state, task), ...deadline(task)];
}

function handOut(state: InstanceState, task: OpenTask): Effect[] {
  if (task.target.kind === "queue") return [{ kind: "task", task }];
  if (task.target.kind === "local") return [{ kind: "local", task }];
  const session = state.sessions.get(task.target.sessionId);
  if (!session) return [];
  if (session.phase.kind === "active") {
    const { on } = session.phase;
    if (!task.byEngine) return suspect(state, session) ? [] : [sendCall(state, task, on)];
    session.phase = { kind: "rebuilding", on, of: task.id };
    session.rebuilds = (session.rebuilds ?? 0) + 1;
    return [sendCall(state, task, on), ...register(state, session)];
  }
  const foreign = session.owner !== state.instanceId;
  return session.phase.kind === "parked" && foreign
    ? [{ kind: "want-session", session: { ...session } }]
    : [];
}

/** One durable schedule per task, for the earliest of its deadlines; a later one replaces it. */
function deadline(task: OpenTask): Effect[] {
  const at = nextTaskDeadline(task);
  return at === undefined ? [] : [{ kind: "schedule", of: task.id, at }];
}

export function started(state: InstanceState, event: EventOf<"activity.started">, at: number): Effect[] {
  const task = state.tasks.get(event.of);
  if (!task) return [];
  task.startedAt = at;
  return deadline(task);
}

export function attemptFailed(state: InstanceState, event: EventOf<"activity.attempt_failed">): Effect[] {
  const task = state.tasks.get(event.of);
  if (!task) return [];
  const interruption = interruptionOf(task, event);
  if (interruption !== "none") task.interruptions++;
  if (interruption === "counted") task.strikes++;
  task.attempt = event.attempt + 1;
  task.readyAt = event.retryAt;
  task.startedAt = undefined;
  task.sentEpoch = undefined;
  task.lastError = event.error;
  if (task.target.kind === "queue") return [{ kind: "task", task }, ...deadline(task)];
  if (task.target.kind === "local") return [{ kind: "schedule", of: task.id, at: task.readyAt }];
  const session = state.sessions.get(task.target.sessionId);
  const phase = session?.phase;
  if (session && phase?.kind === "active")
    return [...sendWaiting(state, session, phase.on), ...deadline(task)];
  const rebuilds = phase?.kind === "rebuilding" && phase.of === task.id ? phase : undefined;
  return [...(rebuilds ? [sendCall(state, task, rebuilds.on)] : []), ...deadline(task)];
}

/** Older histories show an interruption by the code of the error only. */
const interruptionOf = (
  { target }: OpenTask,
  { interruption, error }: EventOf<"activity.attempt_failed">,
): "none" | "free" | "counted" =>
  interruption ?? (target.kind === "session" && error.code === "session_lost" ? "counted" : "none");

export function cancelled(state: InstanceState, event: EventOf<"activity.cancelled">): Effect[] {
  const task = state.tasks.get(event.of);
  if (!task) return [];
  return [{ kind: "cancel-task", task, on: holderOf(state, task) }, ...taskEnded(state, event.of)];
}

/** The worker does not know the engine's deadlines: if one of them ended the task, it gets a cancel notice. */
export function failed(state: InstanceState, event: EventOf<"activity.failed">, at: number): Effect[] {
  const task = state.tasks.get(event.of);
  if (!task) return [];
  const notice: Effect[] = isOverdue(task, event.error, at)
    ? [{ kind: "cancel-task", task, on: holderOf(state, task) }]
    : [];
  return [...notice, ...taskEnded(state, event.of)];
}

export function taskEnded(state: InstanceState, of: number): Effect[] {
  const task = state.tasks.get(of);
  if (!task) return [];
  state.tasks.delete(of);
  const effects = endWaiting(task);
  if (task.target.kind !== "session") return effects;
  const session = state.sessions.get(task.target.sessionId);
  if (session?.phase.kind === "rebuilding" && session.phase.of === of) {
    const { on } = session.phase;
    session.phase = { kind: "active", on };
    state.rebuilt.set(session.sessionId, state.lastEventId);
    effects.push(
      ...register(state, session),
      ...sendWaiting(state, session, on),
      ...notifyGrantees(state, session, on.epoch),
    );
  } else if (session?.phase.kind === "active" && task.strikes > 0) {
    effects.push(...sendWaiting(state, session, session.phase.on));
  }
  return effects;
}

/** Removes what still waits for a task that has ended: its schedule would wake the instance for nothing. */
export function endWaiting({ id, timeouts, target }: OpenTask): Effect[] {
  if (target.kind === "local") return [{ kind: "forget-local", of: id }];
  const { scheduleToCloseMs, scheduleToStartMs, startToCloseMs } = timeouts;
  const none =
    scheduleToCloseMs === undefined && scheduleToStartMs === undefined && startToCloseMs === undefined;
  return none ? [] : [{ kind: "unschedule", of: id }];
}
