/**
 * Finds the deadlines that are due, and the next one. Timers, task timeouts and session deadlines share one mechanism.
 */

import type { NewEvent, SessionState } from "../../../schemas/index.ts";
import { sessionPhases } from "../../../schemas/index.ts";
import { type InstanceState, sessionTasks } from "../fold/state.ts";
import { failSession, lossFacts, type PlacementFacts } from "./accept-session.ts";
import { attemptEnded } from "./attempt-ended.ts";
import { creationTimeoutFailure, sessionLostFailure, timeoutFailure } from "./failures.ts";
import { nextTaskDeadline, taskDeadlines } from "./task-deadlines.ts";

export function dueFacts(state: InstanceState, now: number, placement: PlacementFacts): NewEvent[] {
  const facts: NewEvent[] = [];
  const timers = [...state.timers].filter(([, timer]) => timer.fireAt <= now);
  timers.sort(([idA, a], [idB, b]) => a.fireAt - b.fireAt || idA - idB);
  for (const [of] of timers) facts.push({ kind: "timer.fired", of });

  const dealtWith = new Set<string>();
  for (const session of state.sessions.values()) {
    const events = sessionDue(state, session, now, placement);
    if (events.length === 0) continue;
    dealtWith.add(session.sessionId);
    facts.push(...events);
  }
  for (const task of state.tasks.values()) {
    if (task.target.kind === "session" && dealtWith.has(task.target.sessionId)) continue;
    const due = taskDeadlines(task).find((deadline) => deadline.at <= now);
    if (!due) continue;
    const error = timeoutFailure(due.timeout, task.name, due.ms, task.lastError);
    facts.push(...attemptEnded(task, error, now));
  }
  return facts;
}

function sessionDue(
  state: InstanceState,
  session: SessionState,
  now: number,
  placement: PlacementFacts,
): NewEvent[] {
  if (session.owner !== state.instanceId) return [];
  const { phase } = session;
  const { executionTimeoutMs, creationTimeoutMs } = session.options;
  if (executionTimeoutMs !== undefined && session.openedAt + executionTimeoutMs <= now) {
    switch (phase.kind) {
      case "active":
      case "rebuilding":
        return lossFacts(
          state,
          session,
          phase.on,
          "execution_timeout",
          `lived ${executionTimeoutMs} ms`,
          now,
        );
      case "parked":
      case "opening":
      case "claimed": {
        const error = sessionLostFailure(session.sessionId, undefined, "execution_timeout");
        return [
          ...sessionTasks(state, session.sessionId).map(
            (task): NewEvent => ({ kind: "activity.failed", of: task.id, error }),
          ),
          { kind: "session.lost", sessionId: session.sessionId, reason: "execution_timeout" },
        ];
      }
      default:
        return [];
    }
  }
  if ((phase.kind === "opening" || phase.kind === "claimed") && phase.deadlineAt <= now) {
    const why =
      phase.kind === "claimed"
        ? `init is still running on ${phase.on.workerId}`
        : placement.whyUnclaimed(session);
    return failSession(
      state,
      session,
      creationTimeoutFailure(session.sessionId, session.type, creationTimeoutMs, why),
    );
  }
  return [];
}

/** The next instant at which `dueFacts` may return a fact. */
export function nextDeadline(state: InstanceState): number | undefined {
  let next = Infinity;
  for (const timer of state.timers.values()) next = Math.min(next, timer.fireAt);
  for (const task of state.tasks.values()) {
    for (const deadline of taskDeadlines(task)) next = Math.min(next, deadline.at);
  }
  for (const session of state.sessions.values()) {
    next = Math.min(next, creationDeadline(state, session), lifeDeadline(state, session));
  }
  return next === Infinity ? undefined : next;
}

/**
 * When the lifetimes of the sessions end. Of all schedules, only these are carried over from one execution to
 * the next.
 */
export const lifeDeadlines = (state: Readonly<InstanceState>): number[] =>
  [...state.sessions.values()].map((session) => lifeDeadline(state, session)).filter(Number.isFinite);

/** The deadline of what this event scheduled, while it is open; undefined if nothing waits for that schedule. */
export function deadlineOf(state: Readonly<InstanceState>, of: number): number | undefined {
  const timer = state.timers.get(of);
  if (timer) return timer.fireAt;
  const task = state.tasks.get(of);
  if (task) return nextTaskDeadline(task);
  for (const [sessionId, { creation, life }] of state.sessionSchedules) {
    const session = state.sessions.get(sessionId);
    const at = session && of === creation ? creationDeadline(state, session) : Infinity;
    const end = session && of === life ? lifeDeadline(state, session) : Infinity;
    if (Math.min(at, end) < Infinity) return Math.min(at, end);
  }
  return undefined;
}

function creationDeadline(state: Readonly<InstanceState>, { owner, phase }: SessionState): number {
  if (owner !== state.instanceId || (phase.kind !== "opening" && phase.kind !== "claimed")) return Infinity;
  return phase.deadlineAt;
}

function lifeDeadline(
  state: Readonly<InstanceState>,
  { owner, phase, options, openedAt }: SessionState,
): number {
  const { over } = sessionPhases[phase.kind];
  if (owner !== state.instanceId || over) return Infinity;
  return options.executionTimeoutMs === undefined ? Infinity : openedAt + options.executionTimeoutMs;
}
