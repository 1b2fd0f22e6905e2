/**
 * What an owner before us may have left undone (T3). As a rule an unacknowledged message tells: it comes again, and is
 * known. A turn that a local timer brought about, or a look at what was parked, leaves none behind.
 */
import type { Commit, Wake } from "../../schemas/index.ts";
import type { Effect, Instance } from "../../shared/replay/index.ts";

export interface PredecessorCommit {
  /** What the last commit is; `nothing`: our own, or there is none. */
  kind: "nothing" | "an execution's first commit" | "a later commit";
  /** No message stands for that commit. */
  unvouched: boolean;
  at: number;
}

export const nothing: PredecessorCommit = { kind: "nothing", unvouched: false, at: 0 };

/** Well inside the time in which the server drops what it has stored before: sent again, nothing runs twice. */
const surelyDroppedMs = 60_000;

export function predecessorCommit(commits: readonly Commit[]): PredecessorCommit {
  const last = commits.at(-1);
  if (!last) return nothing;
  const isFirst = commits.length === 1;
  return {
    kind: isFirst ? "an execution's first commit" : "a later commit",
    // What a later execution begins with are sequences of the one before.
    unvouched: last.anchor === undefined && (last.inbox.length === 0 || (isFirst && last.execution > 1)),
    at: last.at,
  };
}

/**
 * Whoever comes first, not only the timer's durable twin, sees to what may be left of a fresh commit; and of an older
 * one, where all it asked for means nothing when it comes again.
 */
export const mayBeUnsent = (
  { unvouched, at }: PredecessorCommit,
  effects: readonly Effect[],
  now: number,
): boolean => unvouched && (now - at < surelyDroppedMs || effects.every(({ kind }) => repeatable.has(kind)));

/** Known by what they are about, not only by their message ids. */
const repeatable: ReadonlySet<Effect["kind"]> = new Set([
  "start-child",
  "cancel-child",
  "request-end",
  "tell-follower",
  "schedule",
  "unschedule",
  "summary",
]);

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
