/** Durable schedules that wake an instance: timers, deadlines, and what stands for a running local activity. */
import type { Wake } from "../../../schemas/index.ts";
import type { InboxMessage, InstanceState, OpenTask } from "../../../shared/replay/index.ts";
import { type EffectOf, executionOf, type Publishing, removeStored } from "./effect-target.ts";
import { publishEffect } from "./publish.ts";
import type { OfferedClaims } from "./session-effects.ts";

/** Most local activities are over before this time, and the schedule that stands for one is then removed. */
const localStandInMs = 1000;
/** Stands for the sequence of a schedule that was not published. */
const neverStored = 0;

/** `again`: the wake that came before its time, if the schedule was stored before and has fired. */
export async function scheduleWake(by: Publishing, of: number, at: number, again?: number): Promise<void> {
  const { deps, state, target } = by;
  const { names } = deps;
  const { instanceId, execution } = state;
  const wake: Wake = { v: 1, execution, of };
  const seq = await publishEffect(target.outbox, names.timer(instanceId, execution, of), wake, {
    // A task's next deadline replaces the one before, and may be equal to an earlier one.
    msgId: [`timer-${executionOf(by)}`, of, at, again ?? state.lastEventId].join("-"),
    schedule: { at, target: names.fired(names.verb(instanceId, "wake")), keptMs: names.firedKeptMs },
  });
  if (seq !== undefined) target.schedules.set(of, seq);
}

/**
 * The timer whose schedule caused this wake; the server removed the schedule when it fired. A timer has one
 * schedule; a task's deadline may have several.
 */
export function timerFiredBy(
  message: InboxMessage,
  { execution, timers }: Readonly<InstanceState>,
): number | undefined {
  if (message.kind !== "wake" || message.wake?.execution !== execution) return undefined;
  return timers.has(message.wake.of) ? message.wake.of : undefined;
}

/**
 * Schedules a deadline. The creation deadline of a session whose state was ready at once is not published:
 * its report waits for its turn, and the anchor stands for that turn (LANE-1).
 */
export async function scheduleDeadline(
  by: Publishing,
  { of, at }: EffectOf<"schedule">,
  offered: OfferedClaims,
): Promise<void> {
  for (const [sessionId, outcome] of offered) {
    if (by.state.sessionSchedules.get(sessionId)?.creation !== of) continue;
    if ((await outcome) !== "activated") break;
    by.target.schedules.set(of, neverStored);
    return;
  }
  await scheduleWake(by, of, at);
}

export async function removeSchedule(by: Publishing, of: number): Promise<unknown> {
  const { bus, names } = by.deps;
  const { instanceId, execution } = by.state;
  const seq = popSeq(by, of);
  if (seq === neverStored) return;
  return seq === undefined
    ? removeStored(by, names.timersStream, names.timer(instanceId, execution, of))
    : bus.deleteMessage(names.timersStream, seq);
}

/** The anchor stands for a local activity; without an anchor, a schedule does (local-work.ts). */
export async function standForLocal(by: Publishing, task: OpenTask): Promise<void> {
  if (by.state.tasks.get(task.id) !== task || by.lane.standsFor !== undefined) return;
  await scheduleWake(by, task.id, by.deps.runtime.clock.now() + localStandInMs);
}

/** A schedule that another owner left fires without effect: to look for it would cost a round trip each time. */
export async function removeLocalSchedule(by: Publishing, of: number): Promise<unknown> {
  const seq = popSeq(by, of);
  return seq === undefined ? undefined : by.deps.bus.deleteMessage(by.deps.names.timersStream, seq);
}

function popSeq({ target }: Publishing, of: number): number | undefined {
  const seq = target.schedules.get(of);
  target.schedules.delete(of);
  return seq;
}
