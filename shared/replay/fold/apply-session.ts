/**
 * Events of sessions. Granted sessions follow the same rules, but only their owner publishes effects for
 * them.
 */
import {
  type Attachment,
  type Borrower,
  changedBlobs,
  changedMetadata,
  type EventOf,
  type HistoryEvent,
  InstanceId,
  type Lending,
  lossPolicies,
  lossReasons,
  type SessionBlob,
  type SessionState,
  useOf,
} from "../../../schemas/index.ts";
import { taskEnded } from "./apply-task.ts";
import type { Effect } from "./effects.ts";
import {
  isOwned,
  notifyGrantees,
  register,
  releaseSession,
  rememberSchedule,
  sendCall,
  sendWaiting,
  unschedule,
} from "./session-effects.ts";
import { type InstanceState, sessionTasks } from "./state.ts";

export type SessionEvent = Extract<HistoryEvent, { kind: `session.${string}` }>;

export function applySession(state: InstanceState, event: SessionEvent, at: number): Effect[] {
  if (event.kind === "session.opened") return opened(state, event, at);
  if (event.kind === "session.lent" && event.refused) return [refusal(state, event, event.refused)];
  const session = state.sessions.get(event.sessionId);
  if (!session) return [];
  switch (event.kind) {
    case "session.requested":
      return requested(state, session, event);
    case "session.claimed": {
      const deadlineAt = session.phase.kind === "opening" ? session.phase.deadlineAt : at;
      session.attachments = event.on.attachment;
      session.phase = { kind: "claimed", on: event.on, deadlineAt };
      return register(state, session).map((effect) => ({ ...effect, held: event.on }));
    }
    case "session.activated":
      return activated(state, session, event);
    case "session.init_failed":
      session.initFailures++;
      return register(state, session);
    case "session.failed": {
      const effects = [
        ...releaseSession(state, session, event.error.code),
        ...deleteAllBlobs(state, session),
      ];
      session.phase = { kind: "failed", error: event.error };
      return [
        ...effects,
        ...register(state, session),
        ...notifyGrantees(state, session, undefined),
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
    case "session.metadata_set":
    case "session.metadata_reported": {
      const { options } = session;
      session.options = { ...options, metadata: changedMetadata(options.metadata, event.change) };
      return register(state, session);
    }
    case "session.blob_changed": {
      const before = session.blobs ?? [];
      session.blobs = changedBlobs(before, event.name, event.stored);
      return [...register(state, session), ...deleteBlobs(before.filter(({ name }) => name === event.name))];
    }
    case "session.closed":
      return closeSession(state, session);
    case "session.lent":
      return lent(state, session, event);
    case "session.returned":
      if (event.from) session.borrowers = without(session.borrowers, event.from);
      else session.lending = undefined;
      return register(state, session);
  }
}

function lent(state: InstanceState, session: SessionState, { lending }: EventOf<"session.lent">): Effect[] {
  const { borrowers, ...alone } = session;
  if (lending.shared) session.borrowers = [...without(borrowers, lending.to), lending.to];
  else session.lending = lending;
  return [...register(state, session), { kind: "lend", session: { ...alone, lending } }];
}

/** A borrower that waits for a session it does not get is lent a failed one, whose error says why. */
function refusal(
  state: InstanceState,
  { sessionId, lending }: EventOf<"session.lent">,
  { type, error }: NonNullable<EventOf<"session.lent">["refused"]>,
): Effect {
  const session: SessionState & { lending: Lending } = {
    sessionId,
    owner: InstanceId.parse(state.instanceId),
    type,
    options: {
      creationTimeoutMs: 1,
      onLost: "fail",
      maxAutoRetries: 0,
      maxInitAttempts: 1,
      requires: { tags: [], resources: {} },
      lazy: false,
      metadata: {},
    },
    openedAt: 0,
    attachments: 0,
    initFailures: 0,
    phase: { kind: "failed", error },
    lending,
  };
  return { kind: "lend", session };
}

const without = (borrowers: SessionState["borrowers"] = [], one: Borrower): Borrower[] =>
  borrowers.filter((borrower) => useOf(borrower) !== useOf(one));

function opened(state: InstanceState, event: EventOf<"session.opened">, at: number): Effect[] {
  // Opened again under the same id: attachments continue the count, because lease keys are never reused.
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
  rememberSchedule(state, event.sessionId, "life", event.id);
  return [{ kind: "schedule", of: event.id, at: at + executionTimeoutMs }, ...effects];
}

function requested(
  state: InstanceState,
  session: SessionState,
  { id, attachment, deadlineAt, restore }: EventOf<"session.requested">,
): Effect[] {
  // Other instances used the id before: their attachments are left out of the count.
  if (attachment > session.attachments + 1) session.attachmentsBefore = attachment - 1;
  session.attachments = attachment;
  session.phase = { kind: "opening", attachment, deadlineAt };
  if (!isOwned(state, session)) return [];
  const before = unschedule(state, session.sessionId, "creation");
  rememberSchedule(state, session.sessionId, "creation", id);
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
    // The other tasks are sent when the rebuild is done; their reports under the old epoch no longer count
    // (S6).
    for (const task of sessionTasks(state, session.sessionId)) task.sentEpoch = undefined;
    return [...register(state, session), sendCall(state, rebuild, on), ...effects];
  }
  session.phase = { kind: "active", on };
  // The rebuild is the next event: no task may use the session before it is done.
  if (isOwned(state, session) && rebuildsOn(session, on, warm))
    return [...register(state, session), ...effects];
  return [
    ...register(state, session),
    ...sendWaiting(state, session, on),
    ...notifyGrantees(state, session, on.epoch),
    ...effects,
  ];
}

/**
 * Once per attachment, except the first, which has nothing to rebuild, and one whose holder kept the state
 * (S14).
 */
export const rebuildsOn = (session: SessionState, on: Attachment, warm: boolean): boolean =>
  lossPolicies[session.options.onLost].rebuilds &&
  session.options.rebuild !== undefined &&
  on.attachment > (session.attachmentsBefore ?? 0) + 1 &&
  !warm;

function lost(
  state: InstanceState,
  session: SessionState,
  event: EventOf<"session.lost">,
  at: number,
): Effect[] {
  // Lost before `init` was done: counted, so that an init that kills its workers comes to an end.
  if (session.phase.kind === "claimed" || session.phase.kind === "opening") session.initFailures++;
  for (const task of sessionTasks(state, session.sessionId)) task.sentEpoch = undefined;
  // An attachment that was never reported is spent all the same: its lease key is not used again.
  if (event.on && event.on.attachment > session.attachments) session.attachments = event.on.attachment;
  const over = lossReasons[event.reason].endsSession;
  const effects = over
    ? [...releaseSession(state, session, event.reason), ...deleteAllBlobs(state, session)]
    : [];
  session.phase = { kind: "lost", on: event.on, reason: event.reason, detail: event.detail };
  session.lastLost = { reason: event.reason, detail: event.detail, at, epoch: event.on?.epoch };
  return [
    ...effects,
    ...register(state, session),
    ...notifyGrantees(state, session, event.on?.epoch),
    ...(over ? unschedule(state, session.sessionId, "creation", "life") : []),
  ];
}

function parked(state: InstanceState, session: SessionState, event: EventOf<"session.parked">): Effect[] {
  const waiting = sessionTasks(state, session.sessionId);
  for (const task of waiting) task.sentEpoch = undefined;
  session.parkedBy = session.phase.kind === "active" ? session.phase.on.workerId : undefined;
  session.phase = { kind: "parked" };
  const effects = [...register(state, session), ...notifyGrantees(state, session, event.epoch)];
  // The owner requests workers; a child can only ask the owner.
  if (waiting.length > 0 && !isOwned(state, session))
    effects.push({ kind: "want-session", session: { ...session } });
  return effects;
}

/** A session that has ended has no blobs any more. */
function deleteAllBlobs(state: InstanceState, session: SessionState): Effect[] {
  const { blobs = [] } = session;
  session.blobs = undefined;
  return isOwned(state, session) ? deleteBlobs(blobs) : [];
}

const deleteBlobs = (blobs: readonly SessionBlob[]): Effect[] =>
  blobs.length === 0 ? [] : [{ kind: "forget-blobs", keys: blobs.map(({ key }) => key) }];

export function closeSession(state: InstanceState, session: SessionState): Effect[] {
  const effects = [...releaseSession(state, session, undefined), ...deleteAllBlobs(state, session)];
  session.phase = { kind: "closed" };
  for (const task of sessionTasks(state, session.sessionId)) effects.push(...taskEnded(state, task.id));
  return [
    ...effects,
    ...register(state, session),
    ...notifyGrantees(state, session, undefined),
    ...unschedule(state, session.sessionId, "creation", "life"),
  ];
}
