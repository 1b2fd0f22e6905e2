/** Copies of an instance in memory, made from its history: a query or an update may have spoiled the one in use. */
import type { Commit } from "../../../schemas/index.ts";
import { Instance, isEnded } from "../../../shared/replay/index.ts";
import type { OrchestratorDeps } from "../deps.ts";

export const emptyInstance = ({ host, runaways }: OrchestratorDeps, instanceId: string): Instance =>
  new Instance(instanceId, host, runaways.whyNot(instanceId));

/** A copy as of the history: nothing of the present turn is recorded yet. */
export async function freshCopy(deps: OrchestratorDeps, spoiled: Instance): Promise<Instance> {
  const { instanceId } = spoiled.state;
  const instance = emptyInstance(deps, instanceId);
  await instance.load((await deps.history.load(instanceId))?.commits ?? []);
  if (spoiled.isAhead) instance.popResumed(); // already announced
  return instance;
}

/** A copy for queries alone: of an ended instance only the state was loaded. `commits`: its history, if known. */
export async function copyWithCode(
  deps: OrchestratorDeps,
  instance: Instance,
  commits: readonly Commit[] | undefined,
): Promise<Instance> {
  if (!isEnded(instance.state)) return instance;
  const { instanceId } = instance.state;
  const copy = emptyInstance(deps, instanceId);
  await copy.load(commits ?? (await deps.history.load(instanceId))?.commits ?? [], { check: true });
  return copy;
}
