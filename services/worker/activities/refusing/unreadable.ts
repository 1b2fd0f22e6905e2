/**
 * Handles a task that this worker cannot read (E1). It is given back while a worker of a later generation is
 * alive, which may be able to read it. Otherwise the attempt is reported as failed with `unreadable_task`.
 * Only a task that does not name its instance becomes a dead letter.
 */

import { z } from "zod";
import {
  type ActivityTask,
  EventId,
  InstanceId,
  newestGeneration,
  wireObject,
} from "../../../../schemas/index.ts";
import { type Delivery, decode } from "../../../../shared/bus/index.ts";
import type { WorkerDeps } from "../../deps.ts";
import { publishReport } from "../report.ts";
import type { TaskDeps } from "../running/run-task.ts";
import type { DecodedTask } from "./decode-task.ts";

const giveBackMs = 2_000;
/** After this many deliveries the task is no longer given back: no worker that can read it has taken it. */
const mostDeliveries = 20;

/** Names the task and the attempt: these fields never change between generations. */
const Address = wireObject({
  instanceId: InstanceId,
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
  capability: z.string().optional(),
});

type Addressed = Pick<ActivityTask, "instanceId" | "execution" | "of" | "attempt" | "capability">;
type Deps = TaskDeps & Pick<WorkerDeps, "generation">;

const Call = wireObject({ task: Address, epoch: z.int().positive() });

type Refused = Extract<DecodedTask, { kind: "invalid" }>;

/** Returns false if the message does not name its instance; the caller must handle it then. */
export function refuseUnreadable(deps: Deps, delivery: Delivery, refused: Refused): boolean {
  const { code, message: why } = refused;
  const task = decode(Address, delivery.body);
  if (code !== "invalid_task" || task.kind === "invalid") return false;
  if (delivery.deliveries < mostDeliveries && deps.generation.isLater("worker")) delivery.nak(giveBackMs);
  else void reportUnreadable(deps, delivery, task.value, undefined, why);
  return true;
}

/** Refuses a call of a session at once, because no other worker holds the session. */
export function refuseUnreadableCall(deps: Deps, delivery: Delivery, why: string): boolean {
  const call = decode(Call, delivery.body);
  if (call.kind === "invalid") return false;
  void reportUnreadable(deps, delivery, call.value.task, call.value.epoch, why);
  return true;
}

async function reportUnreadable(
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
