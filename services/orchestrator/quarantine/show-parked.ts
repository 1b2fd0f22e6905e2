/** Shows people and later deployments whether an instance is parked, and why (T6, T9). */
import type { Instance } from "../../../shared/replay/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { EffectTarget } from "../publishing/effect-target.ts";

/**
 * Called after the commit (T2): otherwise a client that waits for the end could see an end that was never
 * recorded.
 */
export async function showParked(
  deps: OrchestratorDeps,
  { summaries }: EffectTarget,
  { parked, state }: Instance,
): Promise<void> {
  summaries.parked = parked;
  announce(deps, state.instanceId, parked);
  await deps.parked.set(state.instanceId, parked);
  await summaries.write(state);
}

/** Publishes everything people see of the instance again, whatever was published before. */
export async function showAgain(
  deps: OrchestratorDeps,
  { summaries, register }: EffectTarget,
  { parked, state }: Instance,
): Promise<void> {
  const { instanceId, status, lastEventId } = state;
  summaries.parked = parked;
  // A new deployment looks at every listed instance: only a change is announced.
  const wasParked = await deps.parked.has(instanceId);
  if (wasParked !== (parked !== undefined)) announce(deps, instanceId, parked);
  // An id that only received messages, and never a start, is not an instance.
  if (status !== "absent" || lastEventId > 0) await summaries.write(state);
  await register.repair(state);
  // Last: an instance that cannot be shown stays in the list of parked instances.
  await deps.parked.set(instanceId, parked);
}

function announce({ runtime }: OrchestratorDeps, instanceId: string, parked: Instance["parked"]): void {
  if (!parked) return runtime.announce({ kind: "instance.resumed", instanceId });
  const { code, message } = parked;
  runtime.announce({ kind: "instance.parked", instanceId, code, message });
}
