import type { ActivityTask, ActivityTimeouts } from "../../../../schemas/index.ts";
import type { AnyCall, AnySession } from "../../../../shared/definitions/index.ts";
import { parseDuration } from "../../../../shared/runtime/index.ts";
import type { BatchRule } from "./call-queue.ts";

/** Undefined if the type has no call of that name; the host then reports the error. */
const callOf = (definition: AnySession | undefined, name: string): AnyCall | undefined =>
  definition && Object.hasOwn(definition.calls, name) ? definition.calls[name] : undefined;

export function batchRuleOf(definition: AnySession | undefined, name: string): BatchRule | undefined {
  const batch = callOf(definition, name)?.batch;
  if (!batch) return undefined;
  return {
    maxSize: Math.max(1, batch.maxSize),
    maxDelayMs: parseDuration(batch.maxDelay, `batch.maxDelay of ${name}`),
  };
}

/** The stricter of the task's and the definition's limits. Without a definition, the task's own. */
export function withLimits(task: ActivityTask, definition: AnySession | undefined): ActivityTask {
  const call = callOf(definition, task.name);
  if (call?.timeout === undefined && call?.heartbeatTimeout === undefined) return task;
  const timeouts: ActivityTimeouts = { ...task.timeouts };
  const tighten = (field: "startToCloseMs" | "heartbeatMs", own: AnyCall["timeout"], option: string) => {
    if (own === undefined) return;
    const ms = parseDuration(own, `${option} of ${task.name}`);
    timeouts[field] = Math.min(ms, timeouts[field] ?? ms);
  };
  tighten("startToCloseMs", call.timeout, "timeout");
  tighten("heartbeatMs", call.heartbeatTimeout, "heartbeatTimeout");
  return { ...task, timeouts };
}
