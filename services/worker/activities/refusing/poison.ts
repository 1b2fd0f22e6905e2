/**
 * Handles a task whose workers all died before they could answer: reports its failure to the instance, then
 * dead-letters the task.
 */
import type { ActivityTask } from "../../../../schemas/index.ts";
import { buryDelivery, type Delivery } from "../../../../shared/bus/index.ts";
import type { WorkerDeps } from "../../deps.ts";
import { publishReport } from "../report.ts";
import { countReturns } from "./count-returns.ts";

/**
 * True if the task was delivered more often than allowed, not counting deliveries that leaving workers gave
 * back.
 */
export async function isPoisoned(deps: WorkerDeps, task: ActivityTask, delivery: Delivery): Promise<boolean> {
  const { maxDeliveries } = deps.config.activities;
  const { deliveries } = delivery;
  if (deliveries <= maxDeliveries) return false;
  return deliveries - (await countReturns(deps, task)) > maxDeliveries;
}

/** Settled only once the report is stored; otherwise the task comes again. */
export async function refusePoisoned(
  deps: WorkerDeps,
  task: ActivityTask,
  delivery: Delivery,
  signal?: AbortSignal,
): Promise<void> {
  const { instanceId, name, of } = task;
  const { deliveries } = delivery;
  const message = `${name} was handed out ${deliveries - 1} times, and each worker died or lost it before it could answer`;
  const error = { code: "poisoned", message, retryable: false };
  if ((await publishReport(deps, task, { kind: "failed", error }, { signal })) === "given_up") return;
  deps.runtime.announce({ kind: "activity.poisoned", instanceId, name, of, deliveries });
  await buryDelivery(deps, delivery, {
    what: "activity",
    id: instanceId,
    code: error.code,
    message: error.message,
  });
}
