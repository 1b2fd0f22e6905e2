/**
 * What an owner before us may have left undone (T3). As a rule an unacknowledged message tells: it comes again, and is
 * known. A turn that a local timer brought about leaves none behind, but its schedule.
 */
import { type Commit, Wake } from "../../schemas/index.ts";
import { decode, scheduledFor } from "../../shared/bus/index.ts";
import { type Instance, lifeDeadlines } from "../../shared/replay/index.ts";
import type { OrchestratorDeps } from "./deps.ts";

export interface PredecessorCommit {
  /** What the last commit is; `nothing`: our own, or there is none. */
  kind: "nothing" | "an execution's first commit" | "a later commit";
  /** No message stands for that commit. */
  unvouched: boolean;
}

export const nothing: PredecessorCommit = { kind: "nothing", unvouched: false };

export function predecessorCommit(commits: readonly Commit[]): PredecessorCommit {
  const last = commits.at(-1);
  if (!last) return nothing;
  const isFirst = commits.length === 1;
  return {
    kind: isFirst ? "an execution's first commit" : "a later commit",
    // What a later execution begins with are sequences of the one before.
    unvouched: last.anchor === undefined && (last.inbox.length === 0 || (isFirst && last.execution > 1)),
  };
}

/**
 * Where no message stands for the last commit, a timer in its owner's memory brought it about, and what that commit was
 * to take away goes last (publishing/effects.ts): while the timer's schedule is there, or the wake that came of it, the
 * rest may not be out. So the server is asked; no clock is needed, however long ago the owner died.
 */
export async function stillStands(
  { bus, names }: Pick<OrchestratorDeps, "bus" | "names">,
  before: PredecessorCommit,
  instance: Instance,
): Promise<boolean> {
  const { instanceId } = instance.state;
  // In this order: a schedule that fires in between is found as its wake.
  for (const { subject, headers } of (await bus.read(names.inboxStream, names.timersOf(instanceId))) ?? []) {
    const timer = names.parseTimer(subject);
    if (timer && isLeftOver(before, instance, timer, scheduledFor(headers))) return true;
  }
  for (const { body } of (await bus.read(names.inboxStream, names.wakesOf(instanceId))) ?? []) {
    const wake = decode(Wake, body);
    if (wake.kind === "ok" && tellsOfDeath(before, instance, wake.value)) return true;
  }
  return false;
}

/** A schedule that the last commit was to take away or to replace. */
function isLeftOver(
  { kind }: PredecessorCommit,
  { state, lastEffects }: Instance,
  { execution, of }: { execution: number; of: number },
  at: number | undefined,
): boolean {
  if (execution < state.execution)
    return (
      kind === "an execution's first commit" && !lifeDeadlines(state).some((deadline) => deadline === at)
    );
  const last = lastEffects.findLast(
    (effect) => (effect.kind === "unschedule" || effect.kind === "schedule") && effect.of === of,
  );
  return last?.kind === "unschedule" || (last?.kind === "schedule" && last.at !== at);
}

/**
 * A wake nobody waits for. One that the last commit of an owner before us was to take away, to replace, or to follow up
 * says that this owner may have died on its way out, however long ago.
 */
export function tellsOfDeath(
  { kind }: PredecessorCommit,
  { state, lastEffects }: Instance,
  wake: Wake,
): boolean {
  const { execution, of } = wake;
  if (kind === "nothing" || of === 0) return false;
  if (execution < state.execution) return kind === "an execution's first commit";
  return lastEffects.some((effect) => {
    if (effect.kind === "task" || effect.kind === "call") return effect.task.id === of;
    return (effect.kind === "unschedule" || effect.kind === "schedule") && effect.of === of;
  });
}
