/**
 * The rebuild policy: a declared activity restores a session's state, once per attachment and once for all
 * calls that miss it. It is the engine's own task; a rebuild that misses its state causes no further rebuild.
 */
import {
  type Failure,
  holderIn,
  lossPolicies,
  type NewEvent,
  RetryPolicy,
  type SessionState,
} from "../../../schemas/index.ts";
import { type InstanceState, type OpenTask, sessionTasks } from "../fold/state.ts";
import { sessionLostFailure } from "./failures.ts";
import { type Accepted, facts, ignored } from "./inbox.ts";
import { failed, interrupted } from "./interruptions.ts";

export function rebuildTask(session: SessionState): NewEvent {
  const { rebuild } = session.options;
  if (!rebuild) throw new Error("rebuildTask without a rebuild activity");
  return {
    kind: "activity.scheduled",
    name: rebuild.activity,
    input: rebuild.input,
    target: { kind: "session", sessionId: session.sessionId, call: false },
    retry: RetryPolicy.parse({ maxAttempts: 3, initialDelayMs: 100, maxDelayMs: 5000, factor: 2 }),
    timeouts: {},
    by: "engine",
  };
}

export function sessionRebuiltBy(state: InstanceState, task: OpenTask): SessionState | undefined {
  if (task.target.kind !== "session") return undefined;
  const session = state.sessions.get(task.target.sessionId);
  return session?.phase.kind === "rebuilding" && session.phase.of === task.id ? session : undefined;
}

/**
 * The rebuild failed for good: the session has no state. The session and the tasks that wait on it end before
 * the rebuild does.
 */
export function rebuildFailed(
  state: InstanceState,
  session: SessionState,
  rebuild: OpenTask,
  error: Failure,
): NewEvent[] {
  const detail = `rebuild failed: ${error.message}`;
  const lost = sessionLostFailure(session.sessionId, holderIn(session.phase), "aborted", detail);
  const waiting = sessionTasks(state, session.sessionId).filter((task) => task !== rebuild);
  return [
    ...waiting.map((task) => failed(task, lost)),
    { kind: "session.failed", sessionId: session.sessionId, error: lost },
    failed(rebuild, error),
  ];
}

/** Decides what follows if a task on a bare session found its state missing. */
export function stateMissing(state: InstanceState, task: OpenTask, message: string, now: number): Accepted {
  if (task.target.kind !== "session") {
    return facts(failed(task, { code: "session_lost", message, retryable: false }));
  }
  const session = state.sessions.get(task.target.sessionId);
  const on = session && holderIn(session.phase);
  if (!session || !on) return ignored("fenced");
  const error = sessionLostFailure(session.sessionId, on, "aborted", message);
  if (sessionRebuiltBy(state, task)) return facts(...rebuildFailed(state, session, task, error));
  const { onLost, rebuild, maxAutoRetries } = session.options;
  // Single-flight: while a rebuild runs, other calls wait for it, and a call sent before the last one ended
  // has missed it.
  const runs = session.phase.kind === "rebuilding";
  const rebuiltId = state.rebuilt.get(session.sessionId);
  const missed = (rebuiltId ?? 0) > (task.sentId ?? 0);
  // A cold start is no loss: only a state that was made and is still missing counts against the call.
  const cold = rebuiltId === undefined || missed;
  const recovers =
    lossPolicies[onLost].rebuilds && rebuild !== undefined && (cold || task.strikes < maxAutoRetries);
  if (!recovers) return facts(failed(task, error));
  const again = interrupted(task, error, now, cold ? "free" : "counted");
  return runs || missed ? facts(again) : facts(rebuildTask(session), again);
}
