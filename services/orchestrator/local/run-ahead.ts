/**
 * Continues a turn while its code waits only for local activities that end at once: their results become part
 * of the same commit, as further runs of the code (`Commit.rounds`). A chain of short steps then costs one
 * write instead of one each. If the commit is not stored, all of them run again: local activities run at
 * least once, as all activities do.
 */
import type { HistoryEvent } from "../../../schemas/index.ts";
import type { Effect, Instance, Turn } from "../../../shared/replay/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { LaneWork } from "../lane/lane-work.ts";
import type { LocalWork } from "./local-work.ts";

/** Short, because the commit of the turn waits meanwhile. */
const patienceMs = 5;
const mostRounds = 64;

export async function runAhead(
  { runtime, generation }: EngineDeps,
  instance: Instance,
  turn: Turn,
  now: number,
  lane: LaneWork,
  locals: () => LocalWork,
): Promise<void> {
  const { clock } = runtime;
  if (!waitsForLocals(instance, turn) || !generation.allows(2)) return;
  const until = clock.monotonic() + patienceMs;
  // An orchestrator that no longer owns the partition must not begin what its successor has begun.
  while (waitsForLocals(instance, turn) && lane.isHeld && (turn.rounds?.length ?? 0) < mostRounds) {
    const leftMs = until - clock.monotonic();
    const reports = leftMs > 0 ? await locals().ahead(instance.state, leftMs) : [];
    if (reports.length === 0) return;
    const facts: HistoryEvent[] = [];
    for (const report of reports) instance.accept({ kind: "activity", report }, now, facts, turn.effects);
    const [first] = facts;
    if (!first) return;
    const next = await instance.finish(facts, turn.effects, now);
    (turn.rounds ??= []).push(first.id);
    turn.events.push(...next.events);
    turn.deferred = next.deferred;
  }
}

/** True if the effect stays in this process; summaries are published after the commit anyway. */
const staysHere = ({ kind }: Effect): boolean =>
  kind === "local" || kind === "forget-local" || kind === "summary";

function waitsForLocals({ state, parked, isAhead }: Instance, { effects, deferred }: Turn): boolean {
  if (parked || isAhead || deferred || state.status !== "running" || state.next) return false;
  if (!effects.every(staysHere)) return false;
  for (const { target } of state.tasks.values()) if (target.kind === "local") return true;
  return false;
}
