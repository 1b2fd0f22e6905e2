/**
 * An instance whose turn fails the same way each time, because its history cannot be read or the engine is wrong about
 * it. Nothing can be recorded for it, but it must not stand still unseen: it is shown as parked, with its reason (T9).
 */
import { InstanceId, InstanceSummary } from "../../schemas/index.ts";
import type { Fault } from "../../shared/errors/index.ts";
import type { OrchestratorDeps } from "./deps.ts";

export async function showSetAside(deps: OrchestratorDeps, instanceId: string, fault: Fault): Promise<void> {
  const { registers, parked, runtime } = deps;
  const there = await registers.instances.get(instanceId, { leader: true });
  const summary = InstanceSummary.parse({
    ...(there?.value ?? { v: 1, instanceId: InstanceId.parse(instanceId), execution: 0, events: 0 }),
    status: "parked",
    updatedAt: runtime.clock.now(),
    error: { code: fault.code, message: fault.message, retryable: true },
  });
  const outcome = await registers.instances.update(instanceId, summary, there?.revision ?? 0);
  if (outcome.kind !== "written") throw new Error("its summary was changed meanwhile");
  await parked.set(instanceId, fault);
  const { code, message } = fault;
  runtime.announce({ kind: "instance.parked", instanceId, code, message });
}
