/**
 * Decides what a session report means, and what follows from a loss under the session's policy (S5, S6,
 * design section 4).
 */
import { isDeepStrictEqual } from "node:util";
import {
  type Attachment,
  changedMetadata,
  type Failure,
  holderIn,
  type LossReason,
  lossPolicies,
  lossReasons,
  type NewEvent,
  type RunningCall,
  type SessionReport,
  type SessionState,
  sessionPhases,
} from "../../../schemas/index.ts";
import { rebuildsOn } from "../fold/apply-session.ts";
import { type InstanceState, sessionTasks } from "../fold/state.ts";
import { initFailedFailure, sessionLostFailure } from "./failures.ts";
import { type Accepted, facts, ignored } from "./inbox.ts";
import { failed, outcomesOfLoss } from "./interruptions.ts";
import { rebuildTask } from "./rebuild.ts";

/** Answers questions that need a view of the workers. */
export interface PlacementFacts {
  /** Why no worker took it: "no worker with tag gpu", "all 2 workers at capacity", … */
  whyUnclaimed(session: SessionState): string;
}

export function acceptSession(
  state: InstanceState,
  { sessionId, attachment, report }: SessionReport,
  now: number,
): Accepted {
  if (report.kind === "lent") return acceptLent(state, report.session);
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
      return activated(session, attachment, report);
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
      // A call crossed with the parking: it is still open here and needs a holder.
      const waiting = sessionTasks(state, sessionId).length > 0;
      return facts(parked, ...(waiting ? [requestAgain(session, now)] : []));
    }
    case "checkpointed":
      if (holderIn(session.phase)?.epoch !== report.checkpoint.epoch) return ignored("fenced");
      if (session.checkpoint?.key === report.checkpoint.key) return ignored("repeated");
      return facts({
        kind: "session.checkpointed",
        sessionId: session.sessionId,
        checkpoint: report.checkpoint,
      });
    case "metadata": {
      if (holderIn(session.phase)?.epoch !== report.epoch) return ignored("fenced");
      const before = session.options.metadata;
      if (isDeepStrictEqual(changedMetadata(before, report.change), before)) return ignored("repeated");
      const { epoch, change } = report;
      return facts({ kind: "session.metadata_reported", sessionId: session.sessionId, epoch, change });
    }
    case "blob": {
      const { epoch, name, stored } = report;
      if (holderIn(session.phase)?.epoch !== epoch) return ignored("fenced");
      if (session.blobs?.find((blob) => blob.name === name)?.key === stored?.key) return ignored("repeated");
      return facts({ kind: "session.blob_changed", sessionId: session.sessionId, epoch, name, stored });
    }
    case "wanted":
      return phase.kind === "parked" ? facts(requestAgain(session, now)) : ignored("repeated");
    case "closed":
      return ignored("unknown");
    case "spent":
      if (!current || phase.kind !== "opening" || report.upTo < attachment) return ignored("fenced");
      return facts(request({ ...session, attachments: report.upTo }, now, false, phase.deadlineAt));
    case "refused":
      if (!current || phase.kind !== "opening") return ignored("fenced");
      return facts(...failSession(state, session, report.error));
  }
}

type ActivatedReport = Extract<SessionReport["report"], { kind: "activated" }>;

const activatedEvent = (
  { sessionId }: SessionState,
  { on, initMs, warm, restored }: ActivatedReport,
): NewEvent => ({ kind: "session.activated", sessionId, on, initMs, warm, restored });

function activated(session: SessionState, attachment: number, report: ActivatedReport): Accepted {
  const { phase } = session;
  const event = activatedEvent(session, report);
  // S14: a holder that kept its state attached again by itself, before the instance asked another worker.
  const alive =
    phase.kind === "lost" ? !lossReasons[phase.reason].endsSession : sessionPhases[phase.kind].serves;
  // The same if its report about the attachment before was lost on the way, unless that attachment needed a
  // rebuild: then the kept state was never rebuilt.
  const requestedOn = { ...report.on, attachment: session.attachments };
  const missedReport =
    (phase.kind === "opening" || phase.kind === "claimed") && !rebuildsOn(session, requestedOn, false);
  const reattached = report.warm && attachment === session.attachments + 1 && (alive || missedReport);
  if (reattached) return facts(event);
  if (attachment !== session.attachments) return ignored("fenced");
  if (phase.kind !== "opening" && phase.kind !== "claimed") return ignored("repeated");
  if (phase.kind === "claimed" && phase.on.epoch !== report.on.epoch) return ignored("fenced");
  // A holder whose state was made in a moment reports the claim and the state at once.
  const both: NewEvent[] =
    phase.kind === "opening"
      ? [{ kind: "session.claimed", sessionId: session.sessionId, on: report.on }, event]
      : [event];
  return rebuildsOn(session, report.on, report.warm) ? facts(...both, rebuildTask(session)) : facts(...both);
}

function lost(
  state: InstanceState,
  session: SessionState,
  attachment: number,
  report: Extract<SessionReport["report"], { kind: "lost" }>,
  now: number,
): Accepted {
  const { phase } = session;
  // S14: the holder had attached again by itself and died before it could report that. That attachment is
  // spent.
  if (attachment === session.attachments + 1 && (phase.kind === "active" || phase.kind === "rebuilding")) {
    const spent = { ...session, attachments: attachment };
    const on = { ...phase.on, attachment };
    return facts(...lossFacts(state, spent, on, report.reason, report.detail, now, report.running));
  }
  // The same before its first attachment was heard of: that one is lost too, and its own report may come later.
  if (attachment === session.attachments + 1 && phase.kind === "opening") {
    const before = lost(state, session, session.attachments, report, now);
    if (before.kind !== "facts" || before.facts.some(({ kind }) => kind === "session.failed")) return before;
    const initFailures = session.initFailures + 1;
    const next = { ...session, attachments: attachment, initFailures, phase: { ...phase, attachment } };
    const after = lost(state, next, attachment, report, now);
    return after.kind === "facts" ? facts(...before.facts, ...after.facts) : before;
  }
  if (attachment !== session.attachments) return ignored("fenced");
  switch (phase.kind) {
    case "opening":
    case "claimed": {
      // The worker died before `init` was done. Counted like a failed init, so that an init that kills
      // workers comes to an end.
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
      return facts(...lossFacts(state, session, phase.on, report.reason, report.detail, now, report.running));
    default:
      return ignored("repeated");
  }
}

/**
 * All consequences of a loss: the event, the fate of each open task, and a new request if the policy asks for
 * one.
 */
export function lossFacts(
  state: InstanceState,
  session: SessionState,
  on: Attachment,
  reason: LossReason,
  detail: string | undefined,
  now: number,
  running?: readonly RunningCall[],
): NewEvent[] {
  const event: NewEvent = { kind: "session.lost", sessionId: session.sessionId, on, reason, detail };
  const error = sessionLostFailure(session.sessionId, on, reason, detail);
  const { planned, endsSession } = lossReasons[reason];
  const { asksAgain, restores } = lossPolicies[session.options.onLost];
  const restore = session.checkpoint !== undefined && (planned || restores);
  if (endsSession || !(asksAgain || (planned && restore))) {
    return [event, ...sessionTasks(state, session.sessionId).map((task) => failed(task, error))];
  }
  const loss = { on, reason, error, running };
  return [event, ...outcomesOfLoss(state, session, loss, now), request(session, now, restore)];
}

export function request(session: SessionState, now: number, restore: boolean, deadlineAt?: number): NewEvent {
  return {
    kind: "session.requested",
    sessionId: session.sessionId,
    attachment: session.attachments + 1,
    deadlineAt: deadlineAt ?? now + session.options.creationTimeoutMs,
    restore,
  };
}

/** A parked session comes back with its saved state. */
export const requestAgain = (session: SessionState, now: number): NewEvent =>
  request(session, now, session.checkpoint !== undefined);

const restoresAfterInit = ({ checkpoint, options }: SessionState): boolean =>
  checkpoint !== undefined && lossPolicies[options.onLost].restoresAfterFailedInit;

/**
 * After a failed or lost init: request the session again while time and tries are left, else the opening has
 * failed.
 */
function openAgain(
  state: InstanceState,
  session: SessionState,
  deadlineAt: number,
  error: Failure,
  now: number,
): NewEvent[] {
  const attempts = session.initFailures + 1;
  if (attempts < session.options.maxInitAttempts && now < deadlineAt)
    return [request(session, now, restoresAfterInit(session), deadlineAt)];
  return failSession(state, session, initFailedFailure(session.sessionId, session.type, attempts, error));
}

export function failSession(state: InstanceState, session: SessionState, error: Failure): NewEvent[] {
  return [
    ...sessionTasks(state, session.sessionId).map((task) => failed(task, error)),
    { kind: "session.failed", sessionId: session.sessionId, error },
  ];
}

/**
 * Sessions still open when the instance ends are closed by the engine, before the end is recorded (S11). A
 * failed session stays as it is, so that people can still see why it failed.
 */
export const closings = (state: InstanceState): NewEvent[] =>
  [...state.sessions.values()]
    .filter(
      ({ owner, phase: { kind } }) => owner === state.instanceId && kind !== "closed" && kind !== "failed",
    )
    .map(({ sessionId }) => ({ kind: "session.closed", sessionId, by: "engine" }));

/** True if this attachment is the one already known of a granted session, or an earlier one. */
function isKnown({ phase, attachments }: SessionState, on: Attachment): boolean {
  switch (phase.kind) {
    case "active":
    case "rebuilding":
      return on.epoch <= phase.on.epoch;
    case "opening":
    case "claimed":
      return on.attachment < attachments;
    default:
      return on.attachment <= attachments;
  }
}

/**
 * Accepts a member for a use that still waits for one. Any other use has ended, and the orchestrator informs the lender
 * (answer-ignored.ts).
 */
function acceptLent(state: InstanceState, member: SessionState): Accepted {
  const to = member.lending?.to;
  const use = to && to.execution === state.execution ? state.pools.get(to.of) : undefined;
  if (!to || !use) return ignored("late");
  return use.member === undefined ? facts({ kind: "pool.lent", of: to.of, member }) : ignored("repeated");
}

/**
 * The owner reports to a child what happened to a granted session. The child records it and never requests workers
 * itself.
 */
function acceptGranted(
  state: InstanceState,
  session: SessionState,
  report: SessionReport["report"],
  now: number,
): Accepted {
  if (session.phase.kind === "failed") return ignored("repeated");
  const on = holderIn(session.phase);
  switch (report.kind) {
    case "activated":
      if (isKnown(session, report.on)) return ignored("repeated");
      return facts(activatedEvent(session, report));
    case "parked":
      if (on?.epoch !== report.epoch) return ignored("repeated");
      return facts({ kind: "session.parked", sessionId: session.sessionId, epoch: report.epoch });
    case "lost":
      if (!on || (report.epoch !== undefined && report.epoch !== on.epoch)) return ignored("repeated");
      // Here a request only means that the session will be back: its owner requests the workers.
      return facts(...lossFacts(state, session, on, report.reason, report.detail, now, report.running));
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
