/**
 * Tasks whose time was over before a worker could begin them. Their instance went on long ago, and its cancel
 * notice did not reach workers that were not running then.
 *
 * EXPIRED-1 The server's clock alone decides: when it stored the task, and its present time. Errors of the
 *    clocks of the instance's owner and of this worker change nothing; this worker's clock only raises the
 *    suspicion.
 * EXPIRED-2 A task that was begun once has met schedule-to-start: the engine no longer counts that, and it
 *    runs again.
 * EXPIRED-3 Reported like any failure. As a rule the report comes late and is only counted (T5); where the
 *    engine has not judged yet, it ends the task as its own deadline would, and nothing waits for a task that
 *    was dropped.
 */
import type { ActivityTask, Failure } from "../../../../schemas/index.ts";
import type { Delivery } from "../../../../shared/bus/index.ts";
import { silenceFailure } from "../../../../shared/leases/index.ts";
import { announceFault } from "../../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../../deps.ts";
import { publishReport } from "../report.ts";
import type { TaskDeps } from "../running/run-task.ts";

export interface Arrival {
  readonly task: ActivityTask;
  readonly delivery: Delivery;
  /** True if a worker may have begun it before, as far as this can be known (EXPIRED-2). */
  readonly mayHaveBegun: boolean;
}

export interface Expiry {
  timeout: "schedule_to_start" | "schedule_to_close" | "heartbeat";
  ms: number;
  waitedMs: number;
}

/**
 * Returns true if the task may have expired, so that the server should be asked. If this worker's clock is
 * behind, the task runs for nothing, as after a lost notice.
 */
export const looksExpired = ({ runtime }: Pick<WorkerDeps, "runtime">, arrival: Arrival): boolean =>
  expiryAt(arrival, runtime.clock.now()) !== undefined;

/** Undefined if the task has not expired, or if the server did not answer: then it runs. */
export async function expiryOf(
  { bus, names, runtime }: TaskDeps,
  arrival: Arrival,
): Promise<Expiry | undefined> {
  try {
    const info = await bus.streamInfo(names.activitiesStream);
    return info && expiryAt(arrival, info.seenAt);
  } catch (error) {
    announceFault(runtime, "worker.expired", error, { otherwise: "no_time" });
    return undefined;
  }
}

/** EXPIRED-3. Settled only once the report is stored; otherwise the task comes again. */
export async function refuseExpired(
  deps: TaskDeps,
  { task, delivery }: Arrival,
  { timeout, ms, waitedMs }: Expiry,
  signal?: AbortSignal,
): Promise<void> {
  const { instanceId, name, of } = task;
  deps.runtime.announce({ kind: "activity.expired", instanceId, name, of, timeout, waitedMs });
  const message = `activity ${name}: ${timeout} timeout of ${ms} ms`;
  const error: Failure =
    timeout === "heartbeat"
      ? silenceFailure(name, ms)
      : { code: "timeout", message, retryable: false, details: { timeout, ms } };
  const how = await publishReport(deps, task, { kind: "failed", error }, { signal });
  if (how !== "given_up") delivery.ack();
}

function expiryAt({ task, delivery, mayHaveBegun }: Arrival, now: number): Expiry | undefined {
  const { scheduleToStartMs, scheduleToCloseMs } = task.timeouts;
  const waitedMs = now - delivery.at;
  if (scheduleToStartMs !== undefined && scheduleToStartMs <= waitedMs && !mayHaveBegun)
    return { timeout: "schedule_to_start", ms: scheduleToStartMs, waitedMs };
  if (scheduleToCloseMs !== undefined && scheduleToCloseMs <= waitedMs)
    return { timeout: "schedule_to_close", ms: scheduleToCloseMs, waitedMs };
  return undefined;
}
