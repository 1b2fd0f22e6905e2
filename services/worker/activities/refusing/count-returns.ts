/**
 * Counts deliveries that ended because a worker was leaving. The server counts them like deaths, but only the
 * other deliveries make a task poison. Written by the worker that gives a task back, read only for a task
 * that looks like poison.
 */
import { z } from "zod";
import type { ActivityTask } from "../../../../schemas/index.ts";
import {
  bucketStream,
  bucketSubject,
  type Delivery,
  decode,
  type Subjects,
} from "../../../../shared/bus/index.ts";
import { announceFault } from "../../../../shared/runtime/index.ts";
import type { HeartbeatDeps } from "../running/heartbeats.ts";

/** Per attempt: the next attempt is another message, whose deliveries the server counts anew. */
const Returns = z.object({ attempt: z.int(), returns: z.int().nonnegative() });

/** Longer than a task waits between two workers; every return writes it again. */
const keptMs = 7 * 86_400_000;

const subjectOf = (names: Subjects, { instanceId, execution, of }: ActivityTask): string =>
  bucketSubject(names.bucket("heartbeats"), `${instanceId}.${execution}.${of}.returned`);

export async function countReturns(deps: HeartbeatDeps, task: ActivityTask): Promise<number> {
  const { bus, names } = deps;
  const stream = bucketStream(names.bucket("heartbeats"));
  const last = await bus.last(stream, subjectOf(names, task), { leader: true });
  const decoded = last && last.body.length > 0 ? decode(Returns, last.body) : undefined;
  return decoded?.kind === "ok" && decoded.value.attempt === task.attempt ? decoded.value.returns : 0;
}

/**
 * The return is counted before the task is given back, so that the next worker knows. An uncounted return
 * looks like a death.
 */
export async function giveBack(deps: HeartbeatDeps, task: ActivityTask, delivery: Delivery): Promise<void> {
  const { bus, names, runtime } = deps;
  try {
    const returns = (delivery.deliveries > 1 ? await countReturns(deps, task) : 0) + 1;
    const body = Buffer.from(JSON.stringify({ attempt: task.attempt, returns }));
    await bus.publish(subjectOf(names, task), body, { ttlMs: keptMs, timeoutMs: 1_000 });
  } catch (error) {
    announceFault(runtime, "worker.give_back", error, { code: "return_uncounted" });
  }
  delivery.nak();
}
