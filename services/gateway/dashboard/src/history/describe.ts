/** One line about an event, for the table. */

import type { HistoryEvent, Payload, TaskTarget } from "../../../../../schemas/index.ts";
import { shortEpoch } from "../../../../../shared/wording/index.ts";

const longest = 160;

export function describe(event: HistoryEvent): string {
  switch (event.kind) {
    case "instance.started":
      return `${event.name} ${inline(event.input)}`;
    case "instance.completed":
      return inline(event.output);
    case "instance.failed":
      return `${event.error.code}: ${event.error.message}`;
    case "instance.cancelled":
    case "instance.terminated":
    case "cancel.requested":
      return event.reason ?? "";
    case "instance.continued":
      return `as ${event.name} ${inline(event.input)}`;
    case "activity.scheduled": {
      return `${event.name} ${placeOf(event.target)} ${inline(event.input)}`;
    }
    case "activity.started":
      return `#${event.of} attempt ${event.attempt} by ${event.workerId}`;
    case "activity.attempt_failed":
      return `#${event.of} attempt ${event.attempt}: ${event.error.message}`;
    case "activity.completed":
      return `#${event.of}${event.workerId ? ` by ${event.workerId}` : ""} ${inline(event.output)}`;
    case "activity.failed":
    case "child.failed":
    case "update.failed":
      return `#${event.of} ${event.error.code}: ${event.error.message}`;
    case "activity.cancelled":
      return `#${event.of} ${event.reason ?? ""}`;
    case "timer.created":
      return `fires ${new Date(event.fireAt).toISOString()}`;
    case "timer.fired":
    case "timer.cancelled":
    case "child.cancelled":
      return `#${event.of}`;
    case "signal.received":
      return `${event.name} ${inline(event.payload)}`;
    case "end.requested":
      return `${event.verb} ${event.to}`;
    case "update.accepted":
      return `${event.name} ${event.updateId} ${inline(event.input)}`;
    case "update.completed":
      return `#${event.of} ${inline(event.answer)}`;
    case "child.scheduled":
      return `${event.name} as ${event.childId} (${event.mode})`;
    case "child.completed":
      return `#${event.of} ${inline(event.output)}`;
    case "side_effect.recorded":
      return inline(event.value);
    case "patch.marked":
      return event.patch;
    case "status.set":
      return inline(event.status);
    case "pool.joined":
      return `${event.poolId} of ${event.pool.type}`;
    case "pool.lent":
      return `#${event.of} ${event.member.sessionId}`;
    case "pool.left":
      return event.poolId;
    case "session.opened":
      return `${event.sessionId} (${event.type}) on loss: ${event.options.onLost}`;
    case "session.requested":
      return `${event.sessionId} attachment ${event.attachment}`;
    case "session.claimed":
      return `${event.sessionId} by ${event.on.workerId}, epoch ${shortEpoch(event.on.epoch)}`;
    case "session.activated":
      return `${event.sessionId} on ${event.on.workerId} in ${Math.round(event.initMs)} ms${event.warm ? ", warm" : ""}${event.restored ? ", restored" : ""}`;
    case "session.init_failed":
      return `${event.sessionId}: ${event.error.message}`;
    case "session.failed":
      return `${event.sessionId}: ${event.error.message}`;
    case "session.lost":
      return `${event.sessionId}${event.on ? ` by ${event.on.workerId}, epoch ${shortEpoch(event.on.epoch)}` : ""}: ${event.reason}`;
    case "session.lent":
      return `${event.sessionId} to ${event.lending.to.instanceId}`;
    case "session.parked":
    case "session.returned":
    case "session.closed":
      return event.sessionId;
    case "session.metadata_set":
    case "session.metadata_reported":
      return `${event.sessionId}: ${JSON.stringify(event.change)}`;
    case "session.blob_changed":
      return `${event.sessionId}: ${event.name}, ${event.stored ? `${event.stored.bytes} bytes` : "deleted"}`;
    case "session.checkpointed":
      return `${event.sessionId}: ${event.checkpoint.bytes} bytes`;
  }
}

export function inline(payload: Payload): string {
  if ("blob" in payload) return `(${payload.blob.bytes} bytes in the object store)`;
  const text = JSON.stringify(payload.json) ?? "null";
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/** The group of an event kind, for its colour and for filters. */
export function familyOf(kind: HistoryEvent["kind"]): string {
  return kind.slice(0, kind.indexOf("."));
}

function placeOf(target: TaskTarget): string {
  switch (target.kind) {
    case "queue":
      return `on ${target.queue}`;
    case "session":
      return `in ${target.sessionId}`;
    case "local":
      return "locally";
  }
}
