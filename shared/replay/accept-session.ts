/** Session reports, and what a loss means under the session's policy (S5, S6, design section 4). */
import {
  type Attachment,
  type Failure,
  type LossReason,
  type NewEvent,
  RetryPolicy,
  type SessionReport,
  type SessionState,
} from "../../schemas/index.ts";
import { initFailedFailure, sessionLostFailure } from "./failures.ts";
import { type Accepted, facts, ignored } from "./inbox.ts";
import { type InstanceState, type OpenTask, sessionTasks } from "./state.ts";

/** Answers what only a view of the workers knows. */
export interface PlacementFacts {
  /** Why nobody took it: "no worker with tag gpu", "all 2 workers at capacity", … */
  whyUnclaimed(session: SessionState): string;
}

export function acceptSession(
  state: InstanceState,
  { sessionId, attachment, report }: SessionReport,
  now: number,
): Accepted {
  const session = state.sessions.get(sessionId);
  if (!session) return ignored("unknown");
  if (session.owner !== state.instanceId) return acceptGranted(state, session, report, now);
  const { phase } = session;
  const current = attachment === session.attachments;
  switch (report.kind) {
    case "claimed":
      if (!current || phase.kind !== "opening") return ignored(current ? "repeated" : "fenced");
      return facts({ kind: "session.claimed", sessionId: session.sessionId, on: report.on });
    case "activated":
      return activated(session, attachment, report, now);
    case "init_failed":
      if (!current || (phase.kind !== "opening" && phase.kind !== "claimed")) return ignored("fenced");
      return facts(
        { kind: "session.init_failed", sessionId: session.sessionId, attachment, error: report.error },
        ...openAgain(state, session, phase.deadlineAt, report.error, now),
      );
    case "lost":
      return lost(state, session, attachment, report, now);
    case "parked": {
      if (phase.kind !== "active" || phase.on.epoch !== report.epoch) return ignored("fenced");
      const parked: NewEvent = { kind: "session.parked", sessionId: session.sessionId, epoch: report.epoch };
      // A call crossed with the parking: it is still open here and wants a holder.
      const waiting = sessionTasks(state, sessionId).length > 0;
      return facts(parked, ...(waiting ? [request(session, now, false)] : []));
    }
    case "checkpointed":
      if (holder(session)?.epoch !== report.checkpoint.epoch) return ignored("fenced");
      return facts({
        kind: "session.checkpointed",
        sessionId: session.sessionId,
        checkpoint: report.checkpoint,
      });
    case "wanted":
      return phase.kind === "parked" ? facts(request(session, now, false)) : ignored("repeated");
    case "closed":
      return ignored("unknown");
    case "refused":
      if (!current || phase.kind !== "opening") return ignored("fenced");
      return facts(...failSession(state, session, report.error));
  }
}

function activated(
  session: SessionState,
  attachment: number,
  report: Extract<SessionReport["report"], { kind: "activated" }>,
  _now: number,
): Accepted {
  const { phase } = session;
  const event: NewEvent = {
    kind: "session.activated",
    sessionId: session.sessionId,
    on: report.on,
    initMs: report.initMs,
    warm: report.warm,
    restored: report.restored,
  };
  const rebuild = (): NewEvent[] => {
    if (session.options.onLost !== "rebuild" || !session.options.rebuild || attachment === 1 || report.warm)
      return [];
    return [rebuildTask(session)];
  };
  // S14: an owner that kept its state attached again by itself, before anybody else was asked.
  if (
    report.warm &&
    attachment === session.attachments + 1 &&
    (phase.kind === "active" || phase.kind === "lost")
  ) {
    return facts(event);
  }
  if (attachment !== session.attachments) return ignored("fenced");
  if (phase.kind !== "opening" && phase.kind !== "claimed") return ignored("repeated");
  if (phase.kind === "claimed" && phase.on.epoch !== report.on.epoch) return ignored("fenced");
  return facts(event, ...rebuild());
}

function lost(
  state: InstanceState,
  session: SessionState,
  attachment: number,
  report: Extract<SessionReport["report"], { kind: "lost" }>,
  now: number,
): Accepted {
  const { phase } = session;
  if (attachment !== session.attachments) return ignored("fenced");
  switch (phase.kind) {
    case "opening":
    case "claimed": {
      // Died before init was done. Counted like a failed init, so that an init that kills workers comes to an end.
      const on = phase.kind === "claimed" ? phase.on : undefined;
      const error = sessionLostFailure(
        session.sessionId,
        on,
        report.reason,
        report.detail ?? "before init was done",
      );
      return facts(
        {
          kind: "session.lost",
          sessionId: session.sessionId,
          on,
          reason: report.reason,
          detail: report.detail,
        },
        ...openAgain(state, session, phase.deadlineAt, error, now),
      );
    }
    case "active":
    case "rebuilding":
      if (report.epoch !== undefined && report.epoch !== phase.on.epoch) return ignored("fenced");
      return facts(...lossFacts(state, session, phase.on, report.reason, report.detail, now));
    default:
      return ignored("repeated");
  }
}

/** Everything a loss means: the event, the fate of each open task, and a new request if the policy says so. */
export function lossFacts(
  state: InstanceState,
  session: SessionState,
  on: Attachment,
  reason: LossReason,
  detail: string | undefined,
  now: number,
): NewEvent[] {
  const event: NewEvent = { kind: "session.lost", sessionId: session.sessionId, on, reason, detail };
  const error = sessionLostFailure(session.sessionId, on, reason, detail);
  const tasks = sessionTasks(state, session.sessionId);
  const planned = reason === "drained" || reason === "recycled";
  const restore = session.checkpoint !== undefined && (planned || session.options.onLost === "restore");
  const continues =
    reason !== "execution_timeout" && (session.options.onLost !== "fail" || (planned && restore));
  if (!continues) return [event, ...tasks.map((task) => failed(task, error))];
  // Engine work of the old attachment dies with it; the next attachment gets its own.
  const fates = tasks.map((task): NewEvent => {
    if (task.byEngine) return failed(task, error);
    const exhausted = !planned && task.interruptions >= session.options.maxAutoRetries;
    return exhausted ? failed(task, error) : interrupted(task, error, now);
  });
  return [event, ...fates, request(session, now, restore)];
}

/** A task on a bare session found its own state gone. */
export function stateMissing(state: InstanceState, task: OpenTask, message: string, now: number): Accepted {
  if (task.target.kind !== "session") {
    return facts(failed(task, { code: "session_lost", message, retryable: false }));
  }
  const session = state.sessions.get(task.target.sessionId);
  const on = session && holder(session);
  if (!session || !on) return ignored("fenced");
  const error = sessionLostFailure(session.sessionId, on, "aborted", message);
  // Never intercepted itself: a rebuild that finds nothing must not rebuild.
  const recover =
    !task.byEngine &&
    session.options.onLost === "rebuild" &&
    session.options.rebuild !== undefined &&
    task.interruptions < session.options.maxAutoRetries;
  if (!recover) return facts(failed(task, error));
  const again = interrupted(task, error, now);
  // Single-flight: while one rebuild runs, others only wait for it.
  return session.phase.kind === "rebuilding" ? facts(again) : facts(rebuildTask(session), again);
}

const failed = (task: OpenTask, error: Failure): NewEvent => ({
  kind: "activity.failed",
  of: task.id,
  error,
});

const interrupted = (task: OpenTask, error: Failure, now: number): NewEvent => ({
  kind: "activity.attempt_failed",
  of: task.id,
  attempt: task.attempt,
  error,
  retryAt: now,
});

const holder = (session: SessionState): Attachment | undefined =>
  session.phase.kind === "active" || session.phase.kind === "rebuilding" || session.phase.kind === "claimed"
    ? session.phase.on
    : undefined;

export function request(session: SessionState, now: number, restore: boolean, deadlineAt?: number): NewEvent {
  return {
    kind: "session.requested",
    sessionId: session.sessionId,
    attachment: session.attachments + 1,
    deadlineAt: deadlineAt ?? now + session.options.creationTimeoutMs,
    restore,
  };
}

function rebuildTask(session: SessionState): NewEvent {
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

/** After a failed or lost init: ask again while there is time and patience, else the opening failed. */
function openAgain(
  state: InstanceState,
  session: SessionState,
  deadlineAt: number,
  error: Failure,
  now: number,
): NewEvent[] {
  const attempts = session.initFailures + 1;
  if (attempts < session.options.maxInitAttempts && now < deadlineAt)
    return [request(session, now, false, deadlineAt)];
  return failSession(state, session, initFailedFailure(session.sessionId, session.type, attempts, error));
}

export function failSession(state: InstanceState, session: SessionState, error: Failure): NewEvent[] {
  return [
    ...sessionTasks(state, session.sessionId).map((task) => failed(task, error)),
    { kind: "session.failed", sessionId: session.sessionId, error },
  ];
}

/** A child hears from the owner what became of a granted session. It follows; it never asks for workers itself. */
function acceptGranted(
  state: InstanceState,
  session: SessionState,
  report: SessionReport["report"],
  now: number,
): Accepted {
  switch (report.kind) {
    case "activated":
      if (holder(session)?.epoch === report.on.epoch) return ignored("repeated");
      return facts({
        kind: "session.activated",
        sessionId: session.sessionId,
        on: report.on,
        initMs: report.initMs,
        warm: report.warm,
        restored: report.restored,
      });
    case "parked":
      if (session.phase.kind !== "active") return ignored("repeated");
      return facts({ kind: "session.parked", sessionId: session.sessionId, epoch: report.epoch });
    case "lost": {
      const on = holder(session);
      if (!on || (report.epoch !== undefined && report.epoch !== on.epoch)) return ignored("repeated");
      // The request in these facts would be the owner's to make.
      return facts(
        ...lossFacts(state, session, on, report.reason, report.detail, now).filter(
          (fact) => fact.kind !== "session.requested",
        ),
      );
    }
    case "refused":
      return facts(...failSession(state, session, report.error));
    case "closed":
      return facts(
        ...failSession(state, session, {
          code: "session_unusable",
          message: `session ${session.sessionId} was closed by its owner ${session.owner}`,
          retryable: false,
        }),
      );
    default:
      return ignored("unknown");
  }
}
