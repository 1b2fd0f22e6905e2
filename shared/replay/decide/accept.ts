/**
 * Decides what a message means to an instance in its present state. It uses data only: retries, timeouts,
 * fences and session policies are decided here, before anything is written.
 */
import {
  type ActivityReport,
  type ChildReport,
  currentRules,
  holderIn,
  Name,
  type NewEvent,
} from "../../../schemas/index.ts";
import { type InstanceState, isEnded, isSameParent } from "../fold/state.ts";
import { acceptSession, closings, type PlacementFacts } from "./accept-session.ts";
import { attemptEnded } from "./attempt-ended.ts";
import { dueFacts } from "./deadlines.ts";
import { type Accepted, facts, type InboxMessage, ignored } from "./inbox.ts";
import { rebuildFailed, sessionRebuiltBy, stateMissing } from "./rebuild.ts";

export function accept(
  state: InstanceState,
  message: InboxMessage,
  now: number,
  placement: PlacementFacts,
): Accepted {
  if (message.kind === "start") return acceptStart(state, message);
  // A signal sent again, perhaps after the server's duplicate window: it counts once, even if the instance is
  // over.
  if (message.kind === "signal" && message.messageId !== undefined && state.messageIds.has(message.messageId))
    return ignored("repeated");
  if (isEnded(state)) return ignored("ended");
  switch (message.kind) {
    case "signal":
      return facts({
        kind: "signal.received",
        name: Name.parse(message.name),
        payload: message.payload,
        messageId: message.messageId,
      });
    case "update":
      // The code has considered the update before it comes here (Instance.consider).
      return state.updates.has(message.updateId)
        ? ignored("repeated")
        : facts({
            kind: "update.accepted",
            updateId: Name.parse(message.updateId),
            name: Name.parse(message.name),
            input: message.payload,
          });
    case "cancel":
      // The child's id was taken by an instance that is not this parent's child.
      if (message.parent && !isSameParent(state.parent, message.parent)) return ignored("late");
      if (state.status !== "running") return ignored("unknown");
      return state.cancelRequested
        ? ignored("repeated")
        : facts({ kind: "cancel.requested", reason: message.reason });
    case "terminate":
      if (state.status !== "running") return ignored("unknown");
      return facts(...closings(state), { kind: "instance.terminated", reason: message.reason });
    case "activity":
      return acceptActivity(state, message.report, now);
    case "child":
      return acceptChild(state, message.report);
    case "session":
      return acceptSession(state, message.report, now);
    case "wake": {
      const due = dueFacts(state, now, placement);
      return due.length > 0 ? { kind: "facts", facts: due } : ignored("late");
    }
  }
}

function acceptStart(state: InstanceState, message: Extract<InboxMessage, { kind: "start" }>): Accepted {
  if (state.status !== "absent" && state.status !== "pending") return ignored("repeated");
  const carried =
    state.earlySignals.length > 0 ? { signals: state.earlySignals.map(named), sessions: [] } : undefined;
  const started: NewEvent = {
    kind: "instance.started",
    name: Name.parse(message.name),
    input: message.input,
    parent: message.parent,
    follower: message.follower,
    granted: message.granted,
    traceparent: message.traceparent,
    rules: currentRules,
    delayed: message.delayed,
    carried,
  };
  const { over } = message;
  return over ? facts(started, { kind: `instance.${over.status}`, reason: over.reason }) : facts(started);
}

const named = ({ name, payload }: InstanceState["earlySignals"][number]) => ({
  name: Name.parse(name),
  payload,
});

/** T5: the first completion of the current attempt wins; S6: only under the current epoch. */
function acceptActivity(state: InstanceState, report: ActivityReport, now: number): Accepted {
  const task = report.execution === state.execution ? state.tasks.get(report.of) : undefined;
  if (!task || report.attempt !== task.attempt)
    return ignored(report.epoch === undefined || isCurrent(state, report.epoch) ? "late" : "fenced");
  if (task.target.kind === "session" && (task.sentEpoch === undefined || report.epoch !== task.sentEpoch))
    return ignored("fenced");
  const { result } = report;
  switch (result.kind) {
    case "started":
      if (task.startedAt !== undefined) return ignored("repeated");
      return facts({
        kind: "activity.started",
        of: task.id,
        attempt: task.attempt,
        workerId: report.workerId,
      });
    case "completed":
      return facts({
        kind: "activity.completed",
        of: task.id,
        output: result.output,
        workerId: report.workerId,
        epoch: report.epoch,
      });
    case "failed": {
      const ended = attemptEnded(task, result.error, now);
      const rebuilt = ended[0]?.kind === "activity.failed" ? sessionRebuiltBy(state, task) : undefined;
      return facts(...(rebuilt ? rebuildFailed(state, rebuilt, task, result.error) : ended));
    }
    case "state_missing":
      return stateMissing(state, task, result.message, now);
  }
}

/** Epochs are positions in one stream: no two sessions share one. */
const isCurrent = (state: InstanceState, epoch: number): boolean =>
  [...state.sessions.values()].some((session) => holderIn(session.phase)?.epoch === epoch);

function acceptChild(state: InstanceState, report: ChildReport): Accepted {
  const child = report.execution === state.execution ? state.children.get(report.of) : undefined;
  if (!child) return ignored("late");
  return report.result.kind === "completed"
    ? facts({ kind: "child.completed", of: child.id, output: report.result.output })
    : facts({ kind: "child.failed", of: child.id, error: report.result.error });
}
