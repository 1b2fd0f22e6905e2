/** A task that no worker lived to answer: its instance is told, then it is set aside. */
import type { ActivityTask } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/index.ts";
import type { WorkerDeps } from "../deps.ts";
import { deadLetter } from "./dead-letter.ts";
import { publishReport } from "./report.ts";

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
