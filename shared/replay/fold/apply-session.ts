/** Events of sessions. Granted sessions are folded by the same rules; what leaves the process is their owner's. */
import type { Attachment, EventOf, HistoryEvent, SessionState } from "../../../schemas/index.ts";
import { taskEnded } from "./apply-task.ts";
import type { Effect } from "./effects.ts";
import {
  isOwned,
  letSessionGo,
  register,
  remember,
  sendCall,
  sendWaiting,
  tellGrantees,
  unschedule,
} from "./session-effects.ts";
import { type InstanceState, sessionTasks } from "./state.ts";

export type SessionEvent = Extract<HistoryEvent, { kind: `session.${string}` }>;

export function applySession(state: InstanceState, event: SessionEvent, at: number): Effect[] {
  if (event.kind === "session.opened") return opened(state, event, at);
  const session = state.sessions.get(event.sessionId);
  if (!session) return [];
  switch (event.kind) {
    case "session.requested":
      return requested(state, session, event);
    case "session.claimed": {
      const deadlineAt = session.phase.kind === "opening" ? session.phase.deadlineAt : at;
      session.attachments = event.on.attachment;
      session.phase = { kind: "claimed", on: event.on, deadlineAt };
      return register(state, session);
    }
    case "session.activated":
      return activated(state, session, event);
    case "session.init_failed":
      session.initFailures++;
      return register(state, session);
    case "session.failed": {
      const effects = letSessionGo(state, session, event.error.code);
      session.phase = { kind: "failed", error: event.error };
      return [
        ...effects,
        ...register(state, session),
        ...tellGrantees(state, session, undefined),
        ...unschedule(state, session.sessionId, "creation", "life"),
      ];
    }
    case "session.lost":
      return lost(state, session, event, at);
    case "session.parked":
      return parked(state, session, event);
    case "session.checkpointed":
      session.checkpoint = event.checkpoint;
      return [];
    case "session.closed":
      return closeSession(state, session);
    case "session.lent":
      session.lending = event.lending;
      return [...register(state, session), { kind: "lend", session: { ...session, lending: event.lending } }];
    case "session.returned":
      session.lending = undefined;
      return register(state, session);
  }
}

function opened(state: InstanceState, event: EventOf<"session.opened">, at: number): Effect[] {
  // Opened again under the same id: lease keys go on counting, they are never reused.
  const before = state.sessions.get(event.sessionId)?.attachments ?? state.spent[event.sessionId] ?? 0;
  const session: SessionState = {
    sessionId: event.sessionId,
    owner: state.instanceId as SessionState["owner"],
    type: event.type,
    config: event.config,
    options: event.options,
    openedAt: at,
    attachments: before,
    ...(before > 0 && { attachmentsBefore: before }),
    initFailures: 0,
    phase: { kind: "parked" },
  };
  state.sessions.set(event.sessionId, session);
  const { executionTimeoutMs } = event.options;
  const scheduled = unschedule(state, event.sessionId, "creation", "life");
  const effects: Effect[] = [...register(state, session), { kind: "summary" }, ...scheduled];
  if (executionTimeoutMs === undefined) return effects;
  remember(state, event.sessionId, "life", event.id);
  return [{ kind: "schedule", of: event.id, at: at + executionTimeoutMs }, ...effects];
}

function requested(
  state: InstanceState,
  session: SessionState,
  { id, attachment, deadlineAt, restore }: EventOf<"session.requested">,
): Effect[] {
  // The id was used by others before: their attachments are left out.
  if (attachment > session.attachments + 1) session.attachmentsBefore = attachment - 1;
  session.attachments = attachment;
  session.phase = { kind: "opening", attachment, deadlineAt };
  if (!isOwned(state, session)) return [];
  const before = unschedule(state, session.sessionId, "creation");
  remember(state, session.sessionId, "creation", id);
  return [
    { kind: "schedule", of: id, at: deadlineAt },
    ...register(state, session),
    { kind: "claim", session: { ...session }, attachment, deadlineAt, restore },
    ...before,
  ];
}

function activated(
  state: InstanceState,
  session: SessionState,
  { on, warm, restored, initMs }: EventOf<"session.activated">,
): Effect[] {
  const before = session.phase;
  session.attachments = on.attachment;
  session.initFailures = 0;
  // A state that was kept did not run its init again.
  if (!warm) session.initMs = initMs;
  if (!warm && !restored) session.inits = (session.inits ?? 0) + 1;
  session.parkedBy = undefined;
  const effects = unschedule(state, session.sessionId, "creation");
  const rebuild = before.kind === "rebuilding" && warm ? state.tasks.get(before.of) : undefined;
  if (rebuild) {
    session.phase = { kind: "rebuilding", on, of: rebuild.id };
    // The others are sent when it is done; what they say under the old epoch counts no more (S6).
    for (const task of sessionTasks(state, session.sessionId)) task.sentEpoch = undefined;
    return [...register(state, session), sendCall(state, rebuild, on), ...effects];
  }
  session.phase = { kind: "active", on };
  // Its rebuild is the next event: nobody may use the session before that is done.
  if (isOwned(state, session) && rebuildsOn(session, on, warm))
    return [...register(state, session), ...effects];
  return [
    ...register(state, session),
    ...sendWaiting(state, session, on),
    ...tellGrantees(state, session, on.epoch),
    ...effects,
  ];
}

/** Once per attachment, except the first, which has nothing to rebuild, and one whose owner kept the state (S14). */
export const rebuildsOn = (session: SessionState, on: Attachment, warm: boolean): boolean =>
  session.options.onLost === "rebuild" &&
  session.options.rebuild !== undefined &&
  on.attachment > (session.attachmentsBefore ?? 0) + 1 &&
  !warm;

function lost(
  state: InstanceState,
  session: SessionState,
  event: EventOf<"session.lost">,
  at: number,
): Effect[] {
  // Before init was done: counted, so that an init that kills its workers comes to an end.
  if (session.phase.kind === "claimed" || session.phase.kind === "opening") session.initFailures++;
  for (const task of sessionTasks(state, session.sessionId)) task.sentEpoch = undefined;
  // Whoever gave it up himself has let go; a timed-out holder may still be there and is told.
  // An attachment nobody told of is spent all the same: its lease key is not used again.
  if (event.on && event.on.attachment > session.attachments) session.attachments = event.on.attachment;
  const over = event.reason === "execution_timeout";
  const effects = over ? letSessionGo(state, session, event.reason) : [];
  session.phase = { kind: "lost", on: event.on, reason: event.reason, detail: event.detail };
  session.lastLost = { reason: event.reason, detail: event.detail, at, epoch: event.on?.epoch };
  return [
    ...effects,
    ...register(state, session),
    ...tellGrantees(state, session, event.on?.epoch),
    ...(over ? unschedule(state, session.sessionId, "creation", "life") : []),
  ];
}

function parked(state: InstanceState, session: SessionState, event: EventOf<"session.parked">): Effect[] {
  const waiting = sessionTasks(state, session.sessionId);
  for (const task of waiting) task.sentEpoch = undefined;
  session.parkedBy = session.phase.kind === "active" ? session.phase.on.workerId : undefined;
  session.phase = { kind: "parked" };
  const effects = [...register(state, session), ...tellGrantees(state, session, event.epoch)];
  // The owner asks for workers; a child can only ask the owner.
  if (waiting.length > 0 && !isOwned(state, session))
    effects.push({ kind: "want-session", session: { ...session } });
  return effects;
}

export function closeSession(state: InstanceState, session: SessionState): Effect[] {
  const effects = letSessionGo(state, session, undefined);
  session.phase = { kind: "closed" };
  for (const task of sessionTasks(state, session.sessionId)) effects.push(...taskEnded(state, task.id));
  return [
    ...effects,
    ...register(state, session),
    ...tellGrantees(state, session, undefined),
    ...unschedule(state, session.sessionId, "creation", "life"),
  ];
}
