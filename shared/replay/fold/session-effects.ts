/**
 * The effects of a change of a session on its holder, its waiting tasks, its register entry and the children
 * that may use it.
 */
import {
  type Attachment,
  callsAtOnce,
  holderIn,
  type SessionState,
  sessionPhases,
} from "../../../schemas/index.ts";
import type { Effect } from "./effects.ts";
import { type InstanceState, type OpenTask, sessionTasks } from "./state.ts";

export const isOwned = (state: InstanceState, session: SessionState): boolean =>
  session.owner === state.instanceId;

/** Granted sessions are in their owner's register entry, not in this instance's. */
export const register = (state: InstanceState, session: SessionState): Effect[] =>
  isOwned(state, session) ? [{ kind: "register-session", sessionId: session.sessionId }] : [];

export function sendCall(state: InstanceState, task: OpenTask, on: Attachment): Effect {
  task.sentEpoch = on.epoch;
  task.sentId = state.lastEventId;
  task.startedAt = undefined;
  return { kind: "call", task, on };
}

/**
 * LOSS-4: the call that has to be answered before others are sent, because it was running when a holder was lost.
 * Calls of a session with `concurrency` above 1 may wait for each other, so none of them is kept back.
 */
export function suspect(state: InstanceState, session: SessionState): OpenTask | undefined {
  if (callsAtOnce(session.options.concurrency) > 1) return undefined;
  return sessionTasks(state, session.sessionId).find(({ strikes }) => strikes > 0);
}

export function sendWaiting(state: InstanceState, session: SessionState, on: Attachment): Effect[] {
  const alone = suspect(state, session);
  const tasks = alone ? [alone] : sessionTasks(state, session.sessionId);
  return tasks.filter((task) => task.sentEpoch !== on.epoch).map((task) => sendCall(state, task, on));
}

export function holderOf(state: InstanceState, task: OpenTask): Attachment | undefined {
  if (task.target.kind !== "session") return undefined;
  const phase = state.sessions.get(task.target.sessionId)?.phase;
  return phase && sessionPhases[phase.kind].serves ? holderIn(phase) : undefined;
}

/** `epoch`: the attachment that this report is about. */
export function notifyGrantees(
  state: InstanceState,
  session: SessionState,
  epoch: number | undefined,
): Effect[] {
  const to = [...state.children.values()]
    .filter((child) => child.grants.includes(session.sessionId))
    .map((child) => child.childId);
  if (session.lending && isOwned(state, session)) to.push(session.lending.to.instanceId);
  for (const { instanceId } of session.borrowers ?? []) if (!to.includes(instanceId)) to.push(instanceId);
  return to.length === 0 ? [] : [{ kind: "tell-grantees", session: { ...session }, epoch, to }];
}

/** Takes a session from the worker that holds it or was asked to. */
export function releaseSession(
  state: InstanceState,
  session: SessionState,
  reason: string | undefined,
): Effect[] {
  // Granted sessions belong to another instance: only the owner releases them.
  if (!isOwned(state, session)) return [];
  switch (session.phase.kind) {
    case "opening":
      return [{ kind: "withdraw-claim", session: { ...session }, attachment: session.phase.attachment }];
    case "claimed":
    case "active":
    case "rebuilding":
      return [{ kind: "close-session", session: { ...session }, on: session.phase.on, reason }];
    default:
      return [];
  }
}

/** A schedule that is no longer needed would wake the instance for nothing. */
export function unschedule(
  state: InstanceState,
  sessionId: string,
  ...which: ("creation" | "life")[]
): Effect[] {
  const schedules = state.sessionSchedules.get(sessionId);
  const effects: Effect[] = [];
  for (const one of which) {
    const of = schedules?.[one];
    if (!schedules || of === undefined) continue;
    schedules[one] = undefined;
    effects.push({ kind: "unschedule", of });
  }
  return effects;
}

export function rememberSchedule(
  state: InstanceState,
  sessionId: string,
  which: "creation" | "life",
  of: number,
): void {
  state.sessionSchedules.set(sessionId, { ...state.sessionSchedules.get(sessionId), [which]: of });
}
