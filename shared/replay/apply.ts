/** One event happened: change the state and say what must leave the process because of it. */
import type { Attachment, Failure, HistoryEvent, Payload, SessionState } from "../../schemas/index.ts";
import type { Effect } from "./effects.ts";
import { cancelledFailure, terminatedFailure } from "./failures.ts";
import { type InstanceState, type OpenTask, sessionTasks } from "./state.ts";

export function apply(state: InstanceState, event: HistoryEvent, at: number): Effect[] {
  state.lastEventId = event.id;
  switch (event.kind) {
    case "instance.started":
      return started(state, event, at);
    case "instance.completed":
      state.output = event.output;
      return ended(state, "completed", at, { kind: "completed", output: event.output });
    case "instance.failed":
      state.error = event.error;
      return ended(state, "failed", at, { kind: "failed", error: event.error });
    case "instance.cancelled":
      state.error = cancelledFailure(event.reason);
      return ended(state, "cancelled", at, { kind: "failed", error: state.error });
    case "instance.terminated":
      state.error = terminatedFailure(event.reason);
      return ended(state, "terminated", at, { kind: "failed", error: state.error });
    case "instance.continued":
      state.next = { name: event.name, input: event.input };
      return letGo(state, { keepSessions: true });

    case "activity.scheduled":
      return scheduled(state, event, at);
    case "activity.started": {
      const task = state.tasks.get(event.of);
      if (!task) return [];
      task.startedAt = at;
      const { startToCloseMs } = task.timeouts;
      // The worker measures it too; the schedule is for a worker that died.
      return startToCloseMs === undefined
        ? []
        : [{ kind: "schedule", of: event.id, at: at + startToCloseMs }];
    }
    case "activity.attempt_failed":
      return attemptFailed(state, event);
    case "activity.completed":
    case "activity.failed":
      return taskEnded(state, event.of);
    case "activity.cancelled": {
      const task = state.tasks.get(event.of);
      if (!task) return [];
      return [{ kind: "cancel-task", task, on: holderOf(state, task) }, ...taskEnded(state, event.of)];
    }

    case "timer.created":
      state.timers.set(event.id, { fireAt: event.fireAt });
      return [{ kind: "schedule", of: event.id, at: event.fireAt }];
    case "timer.fired":
    case "timer.cancelled":
      state.timers.delete(event.of);
      return [{ kind: "unschedule", of: event.of }];

    case "signal.received":
      if (state.status === "absent") state.status = "pending";
      if (state.status !== "pending") return [];
      state.earlySignals.push({ name: event.name, payload: event.payload });
      return [{ kind: "summary" }];
    case "cancel.requested":
      state.cancelRequested = true;
      return [{ kind: "summary" }];

    case "child.scheduled": {
      const attached = event.mode === "attached";
      const grants = event.grants.flatMap((id) => state.sessions.get(id) ?? []);
      if (attached) {
        state.children.set(event.id, {
          id: event.id,
          childId: event.childId,
          name: event.name,
          grants: event.grants,
        });
      }
      return [
        {
          kind: "start-child",
          id: event.id,
          childId: event.childId,
          name: event.name,
          input: event.input,
          attached,
          grants,
        },
      ];
    }
    case "child.completed":
    case "child.failed":
      state.children.delete(event.of);
      return [];
    case "child.cancelled": {
      const child = state.children.get(event.of);
      state.children.delete(event.of);
      return child ? [{ kind: "cancel-child", childId: child.childId }] : [];
    }

    case "side_effect.recorded":
    case "patch.marked":
      return [];
    case "status.set":
      state.customStatus = event.status;
      return [{ kind: "summary" }];

    case "session.opened": {
      const session: SessionState = {
        sessionId: event.sessionId,
        owner: state.instanceId as SessionState["owner"],
        type: event.type,
        config: event.config,
        options: event.options,
        openedAt: at,
        // Opened again under the same id: lease keys go on counting, they are never reused.
        attachments: state.sessions.get(event.sessionId)?.attachments ?? 0,
        initFailures: 0,
        phase: { kind: "parked" },
      };
      state.sessions.set(event.sessionId, session);
      const { executionTimeoutMs } = event.options;
      return [
        ...(executionTimeoutMs === undefined
          ? []
          : [{ kind: "schedule", of: event.id, at: at + executionTimeoutMs } as const]),
        { kind: "register-session", sessionId: event.sessionId },
        { kind: "summary" },
      ];
    }
    case "session.requested":
      return inSession(state, event.sessionId, (session) => {
        session.attachments = event.attachment;
        session.phase = { kind: "opening", attachment: event.attachment, deadlineAt: event.deadlineAt };
        return [
          { kind: "schedule", of: event.id, at: event.deadlineAt },
          { kind: "register-session", sessionId: event.sessionId },
          {
            kind: "claim",
            session: { ...session },
            attachment: event.attachment,
            deadlineAt: event.deadlineAt,
            restore: event.restore,
          },
        ];
      });
    case "session.claimed":
      return inSession(state, event.sessionId, (session) => {
        const deadlineAt = session.phase.kind === "opening" ? session.phase.deadlineAt : at;
        session.attachments = event.on.attachment;
        session.phase = { kind: "claimed", on: event.on, deadlineAt };
        return [{ kind: "register-session", sessionId: event.sessionId }];
      });
    case "session.activated":
      return inSession(state, event.sessionId, (session) => {
        session.attachments = event.on.attachment;
        session.initFailures = 0;
        session.phase = { kind: "active", on: event.on };
        return [
          { kind: "register-session", sessionId: event.sessionId },
          ...sendWaiting(state, session, event.on),
          ...tellGrantees(state, session),
        ];
      });
    case "session.init_failed":
      return inSession(state, event.sessionId, (session) => {
        session.initFailures++;
        return [{ kind: "register-session", sessionId: event.sessionId }];
      });
    case "session.failed":
      return inSession(state, event.sessionId, (session) => {
        const effects = letSessionGo(state, session, event.error.code);
        session.phase = { kind: "failed", error: event.error };
        return [
          ...effects,
          { kind: "register-session", sessionId: event.sessionId },
          ...tellGrantees(state, session),
        ];
      });
    case "session.lost":
      return inSession(state, event.sessionId, (session) => {
        if (session.phase.kind === "claimed") session.initFailures++;
        for (const task of sessionTasks(state, event.sessionId)) task.sentEpoch = undefined;
        // Whoever gave it up himself has let go; an expired or timed-out holder may still be there and is told.
        const effects =
          event.reason === "execution_timeout" ? letSessionGo(state, session, event.reason) : [];
        session.phase = { kind: "lost", on: event.on, reason: event.reason, detail: event.detail };
        return [
          ...effects,
          { kind: "register-session", sessionId: event.sessionId },
          ...tellGrantees(state, session),
        ];
      });
    case "session.parked":
      return inSession(state, event.sessionId, (session) => {
        for (const task of sessionTasks(state, event.sessionId)) task.sentEpoch = undefined;
        session.phase = { kind: "parked" };
        return [{ kind: "register-session", sessionId: event.sessionId }, ...tellGrantees(state, session)];
      });
    case "session.checkpointed":
      return inSession(state, event.sessionId, (session) => {
        session.checkpoint = event.checkpoint;
        return [];
      });
    case "session.closed":
      return inSession(state, event.sessionId, (session) => closeSession(state, session));
  }
}

function started(
  state: InstanceState,
  event: Extract<HistoryEvent, { kind: "instance.started" }>,
  at: number,
): Effect[] {
  state.status = "running";
  state.name = event.name;
  state.input = event.input;
  state.parent = event.parent;
  state.traceparent = event.traceparent;
  state.startedAt ??= at;
  state.next = undefined;
  for (const session of [...(event.carried?.sessions ?? []), ...(event.granted ?? [])]) {
    state.sessions.set(session.sessionId, { ...session });
  }
  return [{ kind: "summary" }];
}

function scheduled(
  state: InstanceState,
  event: Extract<HistoryEvent, { kind: "activity.scheduled" }>,
  at: number,
): Effect[] {
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
    interruptions: 0,
    lastError: undefined,
  };
  state.tasks.set(event.id, task);
  const effects: Effect[] = [];
  const { scheduleToCloseMs, scheduleToStartMs } = event.timeouts;
  const firstDeadline = Math.min(scheduleToCloseMs ?? Infinity, scheduleToStartMs ?? Infinity);
  if (firstDeadline !== Infinity) effects.push({ kind: "schedule", of: event.id, at: at + firstDeadline });
  if (task.target.kind === "queue") return [{ kind: "task", task }, ...effects];

  const session = state.sessions.get(task.target.sessionId);
  if (!session) return effects;
  if (task.byEngine && session.phase.kind === "active") {
    session.phase = { kind: "rebuilding", on: session.phase.on, of: event.id };
    effects.push(sendCall(task, session.phase.on), {
      kind: "register-session",
      sessionId: session.sessionId,
    });
  } else if (session.phase.kind === "active") {
    effects.push(sendCall(task, session.phase.on));
  } else if (session.phase.kind === "parked" && session.owner !== state.instanceId) {
    effects.push({ kind: "want-session", session: { ...session } });
  }
  return effects;
}

function attemptFailed(
  state: InstanceState,
  event: Extract<HistoryEvent, { kind: "activity.attempt_failed" }>,
): Effect[] {
  const task = state.tasks.get(event.of);
  if (!task) return [];
  if (event.error.code === "session_lost") task.interruptions++;
  task.attempt = event.attempt + 1;
  task.readyAt = event.retryAt;
  task.startedAt = undefined;
  task.sentEpoch = undefined;
  task.lastError = event.error;
  if (task.target.kind === "queue") return [{ kind: "task", task }];
  const session = state.sessions.get(task.target.sessionId);
  return session?.phase.kind === "active" ? [sendCall(task, session.phase.on)] : [];
}

function taskEnded(state: InstanceState, of: number): Effect[] {
  const task = state.tasks.get(of);
  if (!task) return [];
  state.tasks.delete(of);
  const effects: Effect[] = [];
  const { scheduleToCloseMs, scheduleToStartMs } = task.timeouts;
  if (scheduleToCloseMs !== undefined || scheduleToStartMs !== undefined)
    effects.push({ kind: "unschedule", of });
  if (task.target.kind !== "session") return effects;
  const session = state.sessions.get(task.target.sessionId);
  if (session?.phase.kind === "rebuilding" && session.phase.of === of) {
    const { on } = session.phase;
    session.phase = { kind: "active", on };
    effects.push(
      { kind: "register-session", sessionId: session.sessionId },
      ...sendWaiting(state, session, on),
    );
  }
  return effects;
}

const sendCall = (task: OpenTask, on: Attachment): Effect => {
  task.sentEpoch = on.epoch;
  return { kind: "call", task, on };
};

function sendWaiting(state: InstanceState, session: SessionState, on: Attachment): Effect[] {
  return sessionTasks(state, session.sessionId)
    .filter((task) => task.sentEpoch !== on.epoch)
    .map((task) => sendCall(task, on));
}

function holderOf(state: InstanceState, task: OpenTask): Attachment | undefined {
  if (task.target.kind !== "session") return undefined;
  const phase = state.sessions.get(task.target.sessionId)?.phase;
  return phase?.kind === "active" || phase?.kind === "rebuilding" ? phase.on : undefined;
}

function inSession(
  state: InstanceState,
  sessionId: string,
  change: (session: SessionState) => Effect[],
): Effect[] {
  const session = state.sessions.get(sessionId);
  return session ? change(session) : [];
}

function tellGrantees(state: InstanceState, session: SessionState): Effect[] {
  const children = [...state.children.values()].filter((child) => child.grants.includes(session.sessionId));
  return children.length === 0 ? [] : [{ kind: "tell-grantees", session: { ...session }, children }];
}

/** Takes a session from whoever holds it or was asked to. */
function letSessionGo(state: InstanceState, session: SessionState, reason: string | undefined): Effect[] {
  // Granted sessions belong to another instance: only the owner lets go of them.
  if (session.owner !== state.instanceId) return [];
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

function closeSession(state: InstanceState, session: SessionState): Effect[] {
  const effects = letSessionGo(state, session, undefined);
  for (const task of sessionTasks(state, session.sessionId)) effects.push(...taskEnded(state, task.id));
  session.phase = { kind: "closed" };
  return [
    ...effects,
    { kind: "register-session", sessionId: session.sessionId },
    ...tellGrantees(state, session),
  ];
}

/** The instance is over, or begins anew: nothing that was open is waited for any longer. */
function letGo(state: InstanceState, { keepSessions }: { keepSessions: boolean }): Effect[] {
  const effects: Effect[] = [];
  for (const task of state.tasks.values())
    effects.push({ kind: "cancel-task", task, on: holderOf(state, task) });
  for (const of of state.timers.keys()) effects.push({ kind: "unschedule", of });
  for (const child of state.children.values()) effects.push({ kind: "cancel-child", childId: child.childId });
  if (!keepSessions) {
    for (const session of state.sessions.values()) {
      if (session.phase.kind !== "closed") effects.push(...closeSession(state, session));
    }
  }
  state.tasks.clear();
  state.timers.clear();
  state.children.clear();
  return effects;
}

function ended(
  state: InstanceState,
  status: "completed" | "failed" | "cancelled" | "terminated",
  at: number,
  result: { kind: "completed"; output: Payload } | { kind: "failed"; error: Failure },
): Effect[] {
  const effects = letGo(state, { keepSessions: false });
  state.status = status;
  state.endedAt = at;
  if (state.parent) effects.push({ kind: "report-to-parent", parent: state.parent, result });
  return [...effects, { kind: "summary" }];
}
