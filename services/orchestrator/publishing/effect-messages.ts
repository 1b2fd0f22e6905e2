/** The messages that effects publish, made from an instance's state. */
import {
  type ActivityTask,
  type Attachment,
  bareSessionType,
  InstanceId,
  Name,
  type SessionCall,
  type SessionClaim,
  SessionId,
  type SessionReport,
  type SessionState,
} from "../../../schemas/index.ts";
import { type Capabilities, capabilityAddress } from "../../../shared/capabilities/index.ts";
import type { Generation } from "../../../shared/fleet/index.ts";
import type { Effect, InstanceState, OpenTask } from "../../../shared/replay/index.ts";

export const callMessage = (
  state: Readonly<InstanceState>,
  task: OpenTask,
  { sessionId, call }: Extract<OpenTask["target"], { kind: "session" }>,
  { epoch }: Attachment,
  capabilities: Capabilities,
): SessionCall => ({
  v: 1,
  kind: "call",
  epoch,
  call,
  task: taskMessage(state, task, capabilities, epoch),
  lending: lendingOf(state.sessions.get(sessionId)),
});

const lendingOf = (session: SessionState | undefined): number | undefined =>
  session?.lending?.shared ? undefined : session?.lending?.number;

export const taskMessage = (
  state: Readonly<InstanceState>,
  task: OpenTask,
  capabilities: Capabilities,
  epoch?: number,
): ActivityTask => {
  const timeouts = timeoutsOfAttempt(task);
  const { instanceId, execution } = state;
  const address = { instanceId, execution, of: task.id, attempt: task.attempt, epoch };
  return {
    v: 1,
    instanceId: state.instanceId as ActivityTask["instanceId"],
    execution: state.execution,
    of: task.id,
    attempt: task.attempt,
    name: task.name as ActivityTask["name"],
    input: task.input,
    scheduledAt: task.readyAt,
    timeouts,
    reportStart: timeouts.scheduleToStartMs !== undefined || timeouts.startToCloseMs !== undefined,
    traceparent: state.traceparent,
    capability: capabilities.ofTask(address),
    // The first attempt from a queue makes it from its capability: the usual task stays small.
    detailsKey: task.attempt > 1 || epoch !== undefined ? capabilities.ofDetails(address) : undefined,
  };
};

/**
 * Reduces schedule-to-close, which covers all attempts, to the time left: a worker knows only its own
 * attempt.
 */
function timeoutsOfAttempt({ timeouts, scheduledAt, readyAt }: OpenTask): ActivityTask["timeouts"] {
  const { scheduleToCloseMs } = timeouts;
  if (scheduleToCloseMs === undefined || readyAt <= scheduledAt) return timeouts;
  const leftMs = Math.ceil(scheduledAt + scheduleToCloseMs - readyAt);
  return { ...timeouts, scheduleToCloseMs: Math.max(1, leftMs) };
}

export function claimMessage(
  state: Readonly<InstanceState>,
  effect: Extract<Effect, { kind: "claim" }>,
  { generation, capabilities }: { generation: Pick<Generation, "allows">; capabilities: Capabilities },
): SessionClaim {
  const { session, attachment, deadlineAt, restore } = effect;
  const { instanceId } = state;
  const { sessionId } = session;
  const { options } = session;
  return {
    v: 1,
    instanceId: InstanceId.parse(state.instanceId),
    sessionId: SessionId.parse(session.sessionId),
    attachment,
    type: Name.parse(session.type),
    config: session.config,
    requires: options.requires,
    buildId: options.buildId,
    resourceId: options.resourceId,
    affinityKey: options.affinityKey ?? session.type,
    leaseTtlMs: options.leaseTtlMs,
    idleTimeoutMs: options.idleTimeoutMs,
    ...(generation.allows(2) && {
      affinity: options.affinity,
      parkedBy: session.parkedBy,
      blobs: session.blobs,
      // A session that was held before, and comes back after a loss or a park, waits for the quota.
      ...((session.inits ?? 0) === 0 && { whenFull: options.whenFull }),
      ...(session.type === bareSessionType && { concurrency: options.concurrency }),
    }),
    metadata: options.metadata,
    restore: restore ? session.checkpoint : undefined,
    onLost: options.onLost,
    openedAt: session.openedAt,
    deadlineAt,
    traceparent: state.traceparent,
    capability: capabilities.ofSession({ instanceId, sessionId, attachment }),
  };
}

/** A report of the engine itself about a session, for the instance `to`. */
export const engineReport = (
  capabilities: Capabilities,
  to: string,
  report: Parameters<typeof capabilityAddress>[1] & { report: Record<string, unknown> },
): object => ({ v: 1, ...report, capability: capabilities.ofSession(capabilityAddress(to, report)) });

/**
 * The report about the session's phase for a child with a grant; undefined if the phase concerns no child.
 */
export function granteeReport({
  session: { phase },
  epoch,
}: Extract<Effect, { kind: "tell-grantees" }>): SessionReport["report"] | undefined {
  switch (phase.kind) {
    case "active":
      return { kind: "activated", on: phase.on, initMs: 0, warm: false, restored: false };
    case "parked":
      // A call of the child may have crossed with the parking: the child asks for the session again.
      return epoch === undefined ? undefined : { kind: "parked", epoch };
    case "lost":
      return { kind: "lost", epoch, reason: phase.reason, detail: phase.detail };
    case "failed":
      return { kind: "refused", error: phase.error };
    case "closed":
      return { kind: "closed" };
    default:
      return undefined;
  }
}
