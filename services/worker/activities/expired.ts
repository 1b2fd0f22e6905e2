/**
 * Tasks whose time was over before anybody could begin them. Their instance went on long ago, and its notice did not
 * reach those who were not there.
 *
 * EXPIRED-1 Judged by the server's clock alone: when it stored the task, and what time it has now. How far the clocks of the
 *    instance's owner and of this worker are off changes nothing; this worker's only raises the suspicion.
 * EXPIRED-2 What was begun once has met schedule-to-start: the engine no longer counts that, and it runs again.
 * EXPIRED-3 Told like any failure. As a rule that comes late and is only counted (T5); where the engine has not judged yet, it
 *    ends the task as its own deadline would, and nothing waits for a task that was dropped.
 */
import type { ActivityTask, Failure } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { silence } from "../../../shared/leases/index.ts";
import type { WorkerDeps } from "../deps.ts";
import { publishReport } from "./report.ts";
import type { TaskDeps } from "./run-task.ts";

export interface Arrival {
  readonly task: ActivityTask;
  readonly delivery: Delivery;
  /** Begun by somebody before, as far as this can be known (EXPIRED-2). */
  readonly mayHaveBegun: boolean;
}

export interface Expiry {
  timeout: "schedule_to_start" | "schedule_to_close" | "heartbeat";
  ms: number;
  waitedMs: number;
}

/** Worth a question to the server. A clock that is behind lets it run in vain, as a lost notice does. */
export const looksExpired = ({ runtime }: Pick<WorkerDeps, "runtime">, arrival: Arrival): boolean =>
  expiryAt(arrival, runtime.clock.now()) !== undefined;

/** Undefined where it has not expired, or nobody can say: then it is run. */
export async function expiryOf(
  { bus, names, runtime }: TaskDeps,
  arrival: Arrival,
): Promise<Expiry | undefined> {
  try {
    const info = await bus.streamInfo(names.activitiesStream);
    return info && expiryAt(arrival, info.seenAt);
  } catch (error) {
    const code = isFault(error) ? error.code : "no_time";
    const message = error instanceof Error ? error.message : String(error);
    runtime.announce({ kind: "fault", where: "worker.expired", code, message, error });
    return undefined;
  }
}

/** EXPIRED-3. Settled only when its instance is told; otherwise it comes again. */
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
      ? silence(name, ms)
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
