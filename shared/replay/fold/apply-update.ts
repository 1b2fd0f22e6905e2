/** Updates: accepted, answered, or failed because the execution of their handler ended (Q2). */
import type { EventOf, Failure } from "../../../schemas/index.ts";
import type { Effect } from "./effects.ts";
import type { InstanceState, UpdateRecord } from "./state.ts";

export function applyUpdate(
  state: InstanceState,
  event: EventOf<"update.accepted" | "update.completed" | "update.failed">,
): Effect[] {
  if (event.kind === "update.accepted") {
    state.pendingUpdates.set(event.id, event.updateId);
    return setUpdate(state, event.updateId, { kind: "pending", of: event.id });
  }
  const { of } = event;
  const updateId = state.pendingUpdates.get(of);
  state.pendingUpdates.delete(of);
  if (updateId === undefined) return [];
  return setUpdate(
    state,
    updateId,
    event.kind === "update.completed"
      ? { kind: "completed", of, answer: event.answer }
      : { kind: "failed", of, error: event.error },
  );
}

/** The execution ended before these handlers did: the waiting callers get an error. */
export function failPendingUpdates(state: InstanceState, why: "ended" | "continued"): Effect[] {
  const cut = [...state.pendingUpdates].flatMap(([of, updateId]) =>
    setUpdate(state, updateId, { kind: "failed", of, error: interruptedFailure(state, why) }),
  );
  state.pendingUpdates.clear();
  return cut;
}

function setUpdate(state: InstanceState, updateId: string, record: UpdateRecord): Effect[] {
  state.updates.set(updateId, record);
  return [{ kind: "answer-update", updateId, record }];
}

const interruptedFailure = ({ instanceId }: InstanceState, why: "ended" | "continued"): Failure => ({
  code: why === "ended" ? "instance_ended" : "update_interrupted",
  message:
    why === "ended"
      ? `instance ${instanceId} ended before the handler of the update did`
      : `instance ${instanceId} continued as new before the handler of the update ended: it ran in part`,
  retryable: false,
});
