/** The record of one turn as it is appended to the history. */
import type { Commit, InstanceId } from "../../../schemas/index.ts";
import { type Instance, isOfSecondGeneration, type Turn } from "../../../shared/replay/index.ts";
import { type Random, token } from "../../../shared/runtime/index.ts";

/** `laned`: tasks that go by the lane. `anchor`: sequence of the inbox message that stands for them (LANE-1). */
export const commitOf = (
  random: Random,
  instance: Instance,
  turn: Turn,
  laned: readonly number[],
  at: number,
  anchor: number | undefined,
): Commit => ({
  v: 1,
  commitId: token(random),
  instanceId: instance.state.instanceId as InstanceId,
  execution: instance.state.execution,
  at,
  inbox: instance.popInbox(anchor),
  anchor,
  lane: laned.length > 0 ? [...laned] : undefined,
  ...(turn.rounds && { rounds: turn.rounds }),
  deferred: turn.deferred ? true : undefined,
  ...((turn.rounds || turn.events.some(isOfSecondGeneration)) && { needs: 2 }),
  events: turn.events,
});
