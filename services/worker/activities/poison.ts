/** A task that no worker lived to answer: its instance is told, then it is set aside. */
import type { ActivityTask } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/index.ts";
import type { WorkerDeps } from "../deps.ts";
import { deadLetter } from "./dead-letter.ts";
import { publishReport } from "./report.ts";
import { countReturns } from "./returns.ts";

/** Handed out more often than it may be, not counting what leaving workers gave back. */
export async function isPoisoned(deps: WorkerDeps, task: ActivityTask, delivery: Delivery): Promise<boolean> {
  const { maxDeliveries } = deps.config.activities;
  const { deliveries } = delivery;
  if (deliveries <= maxDeliveries) return false;
  return deliveries - (await countReturns(deps, task)) > maxDeliveries;
}

/** Settled only when the instance knows; otherwise it comes again. */
export async function refusePoisoned(
  deps: WorkerDeps,
  task: ActivityTask,
  delivery: Delivery,
  signal?: AbortSignal,
): Promise<void> {
  const { instanceId, name, of } = task;
  const { deliveries } = delivery;
  const message = `${name} was handed out ${deliveries - 1} times and no worker lived to answer`;
  const error = { code: "poisoned", message, retryable: false };
  if ((await publishReport(deps, task, { kind: "failed", error }, { signal })) === "given_up") return;
  deps.runtime.announce({ kind: "activity.poisoned", instanceId, name, of, deliveries });
  await deadLetter(deps, delivery, instanceId, error);
}
