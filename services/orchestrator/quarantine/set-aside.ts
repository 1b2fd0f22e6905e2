/**
 * Shows an instance whose turn fails the same way each time: its history cannot be read or does not answer,
 * or the engine has a bug. No event can be recorded for it, but people must see it: it is shown as parked,
 * with its reason (T9). The owner that runs its next turn shows it as it is then: a request for a look waits
 * with the other messages, since another orchestrator may own the instance by then.
 */
import { InstanceId, InstanceSummary, terminalStatuses } from "../../../schemas/index.ts";
import type { Fault } from "../../../shared/errors/index.ts";
import type { OrchestratorDeps } from "../deps.ts";

/** `starts`: a start is among the messages set aside. */
export async function showSetAside(
  deps: OrchestratorDeps,
  instanceId: string,
  fault: Fault,
  starts: boolean,
): Promise<void> {
  const { registers, parked, runtime } = deps;
  const looked = await registers.instances.look(instanceId, { leader: true });
  const there = looked.kind === "entry" ? looked.entry : undefined;
  const revision = looked.kind === "none" ? 0 : looked.entry.revision;
  // Never overwrite a terminal status: a client that asks for the result does not need the reason for the
  // fault. An id that was never started is not an instance.
  const isOne = starts || looked.kind === "unreadable";
  if (there ? !terminalStatuses.includes(there.value.status) : isOne) {
    const summary = InstanceSummary.parse({
      ...(there?.value ?? { v: 1, instanceId: InstanceId.parse(instanceId), execution: 0, events: 0 }),
      status: "parked",
      updatedAt: runtime.clock.now(),
      error: { code: fault.code, message: fault.message, retryable: true },
    });
    const outcome = await registers.instances.update(instanceId, summary, revision);
    if (outcome.kind !== "written") throw new Error("its summary was changed meanwhile");
  }
  await parked.set(instanceId, fault);
  const asked = await parked.askForLook(instanceId, String(runtime.clock.now()));
  if (!asked) throw new Error("no look was asked for");
  const { code, message } = fault;
  runtime.announce({ kind: "instance.parked", instanceId, code, message });
}
