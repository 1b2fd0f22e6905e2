/**
 * Decides what an earlier owner may have left unpublished (T3). As a rule an unacknowledged message shows it:
 * the message is redelivered, and its commit is found in the history. A turn caused by a local timer leaves
 * no message behind, only the timer's schedule.
 */
import { type Commit, Wake } from "../../../schemas/index.ts";
import { decode, scheduledFor } from "../../../shared/bus/index.ts";
import { type Effect, type Instance, lifeDeadlines } from "../../../shared/replay/index.ts";
import type { OrchestratorDeps } from "../deps.ts";

export interface PredecessorCommit {
  /** What the last commit is; `nothing`: this owner made it, or there is no commit. */
  kind: "nothing" | "an execution's first commit" | "a later commit";
  /** True if no unacknowledged message stands for that commit. */
  unvouched: boolean;
}

export const nothing: PredecessorCommit = { kind: "nothing", unvouched: false };

export function predecessorCommit(commits: readonly Commit[]): PredecessorCommit {
  const last = commits.at(-1);
  if (!last) return nothing;
  const isFirst = commits.length === 1;
  return {
    kind: isFirst ? "an execution's first commit" : "a later commit",
    // The inbox sequences at the start of a later execution belong to the execution before it.
    unvouched: last.anchor === undefined && (last.inbox.length === 0 || (isFirst && last.execution > 1)),
  };
}

/**
 * If no message stands for the last commit, a timer in its owner's memory caused it. The owner removes that
 * commit's old schedules last (publishing/effects.ts): while the timer's schedule exists, or the wake that it
 * fired, other effects may be unpublished. So this owner asks the server; no clock is needed, however long
 * ago the earlier owner died.
 */
export async function stillStands(
  { bus, names }: Pick<OrchestratorDeps, "bus" | "names">,
  before: PredecessorCommit,
  instance: Instance,
): Promise<boolean> {
  const { instanceId } = instance.state;
  // In this order: a schedule that fires between the two reads is found as its wake.
  const schedules = (await bus.read(names.timersStream, names.timersOf(instanceId))) ?? [];
  for (const { subject, headers } of schedules) {
    const timer = names.parseTimer(subject);
    if (timer && isLeftOver(before, instance, timer, scheduledFor(headers))) return true;
  }
  const [fired = [], wakes = []] = [
    await bus.read(names.timersStream, names.fired(names.verb(instanceId, "wake"))),
    await bus.read(names.inboxStream, names.wakesOf(instanceId)),
  ];
  for (const { body } of [...fired, ...wakes]) {
    const wake = decode(Wake, body);
    if (wake.kind === "ok" && tellsOfDeath(before, instance, wake.value)) return true;
  }
  return false;
}

/** True if the last commit was to remove or replace this schedule. */
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
  const last = lastEffects.findLast((effect) => changesSchedules(effect) && effect.of === of);
  return last !== undefined && (last.kind !== "schedule" || last.at !== at);
}

type ChangesSchedules = Extract<Effect, { kind: "schedule" | "unschedule" | "forget-local" }>;

const changesSchedules = (effect: Effect): effect is ChangesSchedules =>
  effect.kind === "schedule" || effect.kind === "unschedule" || effect.kind === "forget-local";

/**
 * Judges a wake that no timer or task waits for. If the last commit of an earlier owner was to remove,
 * replace or follow up this wake, that owner may have died before its effects were published, however long
 * ago.
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
    return changesSchedules(effect) && effect.of === of;
  });
}
