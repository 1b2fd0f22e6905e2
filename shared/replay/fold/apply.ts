/** Applies one event: changes the state and returns the effects to publish because of it. */
import type { EventOf, Failure, HistoryEvent, Payload } from "../../../schemas/index.ts";
import { cancelledFailure, terminatedFailure } from "../decide/failures.ts";
import { applyPool, leavePool } from "./apply-pool.ts";
import { applySession, closeSession } from "./apply-session.ts";
import {
  attemptFailed,
  cancelled,
  endWaiting,
  failed,
  scheduled,
  taskEnded,
  started as taskStarted,
} from "./apply-task.ts";
import { applyUpdate, failPendingUpdates } from "./apply-update.ts";
import type { Effect } from "./effects.ts";
import { holderOf, isOwned } from "./session-effects.ts";
import { carriedIds, type InstanceState } from "./state.ts";

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
      state.next = { name: event.name, input: event.input, signals: event.signals ?? [], state: event.state };
      return endOpenOperations(state, { keepSessions: true });

    case "activity.scheduled":
      return scheduled(state, event, at);
    case "activity.started":
      return taskStarted(state, event, at);
    case "activity.attempt_failed":
      return attemptFailed(state, event);
    case "activity.completed":
      return taskEnded(state, event.of);
    case "activity.failed":
      return failed(state, event, at);
    case "activity.cancelled":
      return cancelled(state, event);

    case "timer.created":
      state.timers.set(event.id, { fireAt: event.fireAt });
      return [{ kind: "schedule", of: event.id, at: event.fireAt }];
    case "timer.fired":
    case "timer.cancelled":
      state.timers.delete(event.of);
      return [{ kind: "unschedule", of: event.of }];

    case "signal.received":
      if (event.messageId !== undefined) state.messageIds.set(event.messageId, true);
      if (state.status === "absent") state.status = "pending";
      if (state.status !== "pending") return [];
      state.earlySignals.push({ name: event.name, payload: event.payload });
      return [{ kind: "summary" }];
    case "update.accepted":
    case "update.completed":
    case "update.failed":
      return applyUpdate(state, event);
    case "cancel.requested":
      state.cancelRequested = true;
      state.cancelReason = event.reason;
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
          follow: event.follow,
        },
      ];
    }
    case "end.requested": {
      const { id, to, verb, reason } = event;
      return [{ kind: "request-end", id, to, verb, reason }];
    }
    case "child.completed":
    case "child.failed":
      state.children.delete(event.of);
      return [];
    case "child.cancelled": {
      const child = state.children.get(event.of);
      state.children.delete(event.of);
      return child ? [{ kind: "cancel-child", id: child.id, childId: child.childId }] : [];
    }

    case "side_effect.recorded":
    case "patch.marked":
      return [];
    case "status.set":
      state.customStatus = event.status;
      return [{ kind: "summary" }];

    case "pool.joined":
    case "pool.lent":
    case "pool.left":
      return applyPool(state, event);

    case "session.opened":
    case "session.requested":
    case "session.claimed":
    case "session.activated":
    case "session.init_failed":
    case "session.failed":
    case "session.lost":
    case "session.parked":
    case "session.checkpointed":
    case "session.metadata_set":
    case "session.metadata_reported":
    case "session.blob_changed":
    case "session.closed":
    case "session.lent":
    case "session.returned":
      return applySession(state, event, at);
  }
}

function started(state: InstanceState, event: EventOf<"instance.started">, at: number): Effect[] {
  state.status = "running";
  state.name = event.name;
  state.rules = event.rules ?? 0;
  state.input = event.input;
  state.parent = event.parent;
  state.follower = event.follower;
  state.traceparent = event.traceparent;
  state.startedAt = event.carried?.startedAt ?? at;
  state.spent = event.carried?.spent ?? {};
  const { messageIds = [], updates = [] } = event.carried ?? {};
  for (const id of messageIds) state.messageIds.set(id, true);
  state.forgetsIds = Math.max(messageIds.length, updates.length) >= carriedIds;
  state.next = undefined;
  for (const updateId of updates) state.updates.set(updateId, { kind: "earlier", of: 0 });
  for (const session of [...(event.carried?.sessions ?? []), ...(event.granted ?? [])]) {
    state.sessions.set(session.sessionId, { ...session });
  }
  return [...(event.delayed ? [{ kind: "forget-delayed-start" } as const] : []), { kind: "summary" }];
}

/** Ends every open operation: the instance has ended, or starts its next execution. */
function endOpenOperations(state: InstanceState, { keepSessions }: { keepSessions: boolean }): Effect[] {
  const effects = [...state.pools.keys()].flatMap((id) => leavePool(state, id));
  effects.push(...failPendingUpdates(state, keepSessions ? "continued" : "ended"));
  for (const task of state.tasks.values())
    effects.push({ kind: "cancel-task", task, on: holderOf(state, task) }, ...endWaiting(task));
  for (const of of state.timers.keys()) effects.push({ kind: "unschedule", of });
  for (const { id, childId } of state.children.values()) effects.push({ kind: "cancel-child", id, childId });
  if (!keepSessions) {
    for (const session of state.sessions.values()) {
      const { kind } = session.phase;
      if (isOwned(state, session) && kind !== "closed" && kind !== "failed")
        effects.push(...closeSession(state, session));
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
  const effects = endOpenOperations(state, { keepSessions: false });
  state.status = status;
  state.endedAt = at;
  if (state.follower) effects.push({ kind: "tell-follower", follower: state.follower, status });
  if (state.parent) effects.push({ kind: "report-to-parent", parent: state.parent, result });
  return [...effects, { kind: "summary" }];
}
