/** Tasks for workers: by the lane or by the queue, calls on sessions, and their cancellation. */
import {
  type CancelNotice,
  EventId,
  InstanceId,
  type LaneCalls,
  laneBeforeHeader,
  type SessionCall,
  type SessionWork,
} from "../../../schemas/index.ts";
import { encode } from "../../../shared/bus/index.ts";
import { derivedCapability } from "../../../shared/capabilities/index.ts";
import type { Effect, OpenTask } from "../../../shared/replay/index.ts";
import { callMessage, taskMessage } from "./effect-messages.ts";
import { type EffectOf, executionOf, type Publishing, removeStored, sendToHolder } from "./effect-target.ts";
import { publishEffect } from "./publish.ts";

/**
 * Sequences of tasks that this process put into their queue: a cancelled task is deleted there without
 * waiting for a worker.
 */
const queued = new WeakMap<OpenTask, number>();

export async function publishTask(
  { deps, state, target: { outbox }, lane }: Publishing,
  task: OpenTask,
): Promise<void> {
  const { names, runtime, workSent, capabilities } = deps;
  const { id, attempt, readyAt, target } = task;
  if (state.tasks.get(id) !== task || target.kind !== "queue" || lane.isOut(state, task)) return;
  const message = encode(taskMessage(state, task, capabilities));
  if (await lane.send(state, task, message)) return;
  const { instanceId, execution } = state;
  const subject = names.activity(target.queue, task.name);
  const msgId = `task-${instanceId}-${execution}-${id}-${attempt}`;
  const headers = lane.wasLost(task) ? { [laneBeforeHeader]: "1" } : undefined;
  if (readyAt <= runtime.clock.now()) {
    const seq = await publishEffect(outbox, subject, message, { msgId, headers });
    workSent();
    if (seq !== undefined) queued.set(task, seq);
    return;
  }
  const waiting = names.retry(instanceId, execution, id, attempt);
  queued.delete(task);
  await publishEffect(outbox, waiting, message, { msgId, schedule: { at: readyAt, target: subject } });
}

/** `callsSent`: resolves for each session when its calls that were planned for the lane have been offered. */
export async function publishCall(
  by: Publishing,
  { task, on }: EffectOf<"call">,
  callsSent: ReadonlyMap<string, Promise<boolean>>,
): Promise<unknown> {
  const { deps, state, target, lane } = by;
  const { names, runtime, capabilities } = deps;
  const { instanceId, execution, tasks } = state;
  if (tasks.get(task.id) !== task || task.target.kind !== "session" || task.sentEpoch !== on.epoch) return;
  const { sessionId } = task.target;
  await callsSent.get(sessionId);
  if (lane.isOut(state, task)) return;
  const work = callMessage(state, task, task.target, on, capabilities);
  const msgId = `call-${executionOf(by)}-${task.id}-${task.attempt}-${on.epoch}`;
  if (task.readyAt <= runtime.clock.now()) return sendToHolder(by, on, sessionId, work, msgId);
  const waiting = names.sessionRetry(instanceId, execution, task.id, task.attempt);
  const schedule = { at: task.readyAt, target: names.sessionWork(on.workerId, sessionId) };
  return publishEffect(target.outbox, waiting, work, { msgId, schedule });
}

/**
 * Sends the calls planned for the lane, all calls of one session in one message: a call must not overtake
 * another. Resolves for each session when it is known whether a worker took them; if not, they go by the
 * queue, in the same order.
 */
export function sendCalls(
  { deps, state, lane }: Publishing,
  effects: readonly Effect[],
): ReadonlyMap<string, Promise<boolean>> {
  const sent = new Map<string, Promise<boolean>>();
  const planned = new Map<string, { workerId: string; tasks: OpenTask[]; calls: SessionCall[] }>();
  for (const effect of effects) {
    if (effect.kind !== "call" || !lane.isPlanned(effect.task)) continue;
    const { task, on } = effect;
    if (task.target.kind !== "session" || task.sentEpoch !== on.epoch) continue;
    const { sessionId } = task.target;
    const group = planned.get(sessionId) ?? { workerId: on.workerId, tasks: [], calls: [] };
    planned.set(sessionId, group);
    group.tasks.push(task);
    group.calls.push(callMessage(state, task, task.target, on, deps.capabilities));
  }
  for (const [sessionId, { workerId, tasks, calls }] of planned) {
    const message: LaneCalls = { v: 1, calls };
    sent.set(sessionId, lane.sendCalls(state, tasks, encode(message), { sessionId, workerId }));
  }
  return sent;
}

export async function cancelTask(by: Publishing, { task, on }: EffectOf<"cancel-task">): Promise<unknown> {
  const { bus, names } = by.deps;
  const { instanceId, execution } = by.state;
  // Before the notice, so that an attempt that comes due meanwhile is sent before the notice, never after it.
  await withdrawRetry(by, task);
  if (task.target.kind === "queue") {
    // All notices of a turn are sent together: a worker that ends one of these tasks must not begin another of
    // them.
    const of = task.id;
    const shown = by.deps.capabilities.ofTask({ instanceId, execution, of, attempt: task.attempt });
    const capability = shown && derivedCapability(shown, "cancel");
    const notice: CancelNotice = {
      instanceId: InstanceId.parse(instanceId),
      execution,
      of: EventId.parse(of),
      capability,
    };
    bus.send(names.cancels, encode(notice));
    const seq = queued.get(task);
    return seq === undefined ? undefined : bus.deleteMessage(names.activitiesStream, seq);
  }
  if (!on || task.target.kind !== "session") return;
  const cancel: SessionWork = {
    v: 1,
    kind: "cancel",
    epoch: on.epoch,
    instanceId: InstanceId.parse(instanceId),
    execution,
    of: EventId.parse(task.id),
  };
  return sendToHolder(by, on, task.target.sessionId, cancel, `cancel-${executionOf(by)}-${task.id}`);
}

/**
 * Removes the stored message of the next attempt. Otherwise that attempt would run when it is due although
 * the instance no longer waits for it: workers do not remember cancel notices that long. The subject names
 * the attempt, so nothing else is removed; a task that has ended has no later attempt.
 */
async function withdrawRetry(by: Publishing, { id, attempt, target }: OpenTask): Promise<void> {
  const { names } = by.deps;
  const { instanceId, execution } = by.state;
  // Only the server, by its own clock, knows whether the attempt is due.
  if (attempt === 1 || target.kind === "local") return;
  if (target.kind === "queue")
    await removeStored(by, names.activitiesStream, names.retry(instanceId, execution, id, attempt));
  else await removeStored(by, names.sessionsStream, names.sessionRetry(instanceId, execution, id, attempt));
}
