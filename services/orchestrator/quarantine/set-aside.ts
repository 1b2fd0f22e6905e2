/**
 * An instance whose turn fails the same way each time, because its history cannot be read, does not answer, or the
 * engine is wrong about it. Nothing can be recorded for it, but it must not stand still unseen: it is shown as parked,
 * with its reason (T9). Whoever takes its next turn shows it as it is then: a message that asks for it waits with the
 * others, as its owner may be another one by then.
 */
import { InstanceId, InstanceSummary, terminalStatuses } from "../../../schemas/index.ts";
import type { Fault } from "../../../shared/errors/index.ts";
import type { OrchestratorDeps } from "../deps.ts";

/** `starts`: a start waits with what is set aside. */
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
  // An end that was told stays told: who asks for the result has no use for the reason why nothing more is heard. And
  // what nobody started is no instance.
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
