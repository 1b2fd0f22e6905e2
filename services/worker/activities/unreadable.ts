/**
 * A task this worker cannot read (E1). It is given back while a worker of a later generation is alive, which may be able
 * to. Otherwise its instance is told: the attempt failed with `unreadable_task`. Only what does not even say whose it is
 * becomes a dead letter.
 */

import { z } from "zod";
import {
  type ActivityTask,
  EventId,
  InstanceId,
  newestGeneration,
  wireObject,
} from "../../../schemas/index.ts";
import { type Delivery, decode } from "../../../shared/bus/index.ts";
import type { WorkerDeps } from "../deps.ts";
import type { DecodedTask } from "./decode-task.ts";
import { publishReport } from "./report.ts";
import type { TaskDeps } from "./run-task.ts";

const giveBackMs = 2_000;
/** Given back so often, nobody who could read it has taken it. */
const mostDeliveries = 20;

/** Which attempt at which task: what never changes in a task. */
const Address = wireObject({
  instanceId: InstanceId,
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
});

type Addressed = Pick<ActivityTask, "instanceId" | "execution" | "of" | "attempt">;
type Deps = TaskDeps & Pick<WorkerDeps, "generation">;

const Call = wireObject({ task: Address, epoch: z.int().positive() });

type Refused = Extract<DecodedTask, { kind: "invalid" }>;

/** True where it is seen to; otherwise it does not say whose it is. */
export function refuseUnreadable(deps: Deps, delivery: Delivery, refused: Refused): boolean {
  const { code, message: why } = refused;
  const task = decode(Address, delivery.body);
  if (code !== "invalid_task" || task.kind === "invalid") return false;
  if (delivery.deliveries < mostDeliveries && deps.generation.isLater("worker")) delivery.nak(giveBackMs);
  else void tell(deps, delivery, task.value, undefined, why);
  return true;
}

/** Of a session's work: nobody else could do it. */
export function refuseUnreadableCall(deps: Deps, delivery: Delivery, why: string): boolean {
  const call = decode(Call, delivery.body);
  if (call.kind === "invalid") return false;
  void tell(deps, delivery, call.value.task, call.value.epoch, why);
  return true;
}

async function tell(
  deps: Deps,
  delivery: Delivery,
  task: Addressed,
  epoch: number | undefined,
  why: string,
): Promise<void> {
  const message = `worker ${deps.identity.workerId}, which knows generation ${newestGeneration}, cannot read this task: ${why}`;
  const error = { code: "unreadable_task", message, retryable: true };
  const reported = await publishReport(deps, task, { kind: "failed", error }, { epoch });
  if (reported !== "given_up") delivery.ack();
}
