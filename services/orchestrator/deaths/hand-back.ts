/**
 * Hands the tasks of a dead worker back to the queue at once instead of after their acknowledgement wait. The
 * queue does not say which worker holds which task, so the orchestrator asks the live workers: a task that
 * was delivered, is not settled and is held by none of them was held by the dead worker. If a live worker
 * does not answer, it may hold the task, and the acknowledgement wait decides: no task runs twice because its
 * worker is slow (D1).
 */
import { ActivityTask, LaneHoldings, type LaneQuestion, type WorkerInfo } from "../../../schemas/index.ts";
import { decode, encode, type StoredMessage } from "../../../shared/bus/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { laneTaskName } from "../lane/out-task.ts";

type HandBackDeps = Pick<EngineDeps, "bus" | "names" | "workers">;
type Served = WorkerInfo["activities"][number];

const pageSize = 256;
const answerWithinMs = 1_000;

/** Returns how many tasks were handed back. */
export async function handBackTasksOf(deps: HandBackDeps, dead: WorkerInfo): Promise<number> {
  const { bus, names } = deps;
  const consumers = new Map((await bus.consumers(names.activitiesStream)).map((info) => [info.name, info]));
  let handedBack = 0;
  for (const served of dead.activities) {
    const consumer = names.activityConsumer(served.queue, served.name);
    const info = consumers.get(consumer);
    if (!info || info.ackPending === 0) continue;
    for (let from = info.settledSeq + 1; from <= info.handedOutSeq; ) {
      const subject = names.activity(served.queue, served.name);
      const page = (await bus.read(names.activitiesStream, subject, from, pageSize)) ?? [];
      const out = page.filter(({ seq }) => seq <= info.handedOutSeq);
      const orphans = await orphansOf(deps, dead.workerId, served, out);
      if (orphans === "unknown") break;
      if (orphans.length > 0) await bus.handBack(names.activitiesStream, consumer, orphans);
      handedBack += orphans.length;
      const last = page.at(-1);
      if (!last || out.length < page.length) break;
      from = last.seq + 1;
    }
  }
  return handedBack;
}

async function orphansOf(
  { bus, names, workers }: HandBackDeps,
  deadId: string,
  { queue, name }: Served,
  messages: readonly StoredMessage[],
): Promise<number[] | "unknown"> {
  const out = messages.flatMap(({ seq, body }) => {
    const task = decode(ActivityTask, body);
    return task.kind === "ok" ? [{ seq, name: laneTaskName(task.value) }] : [];
  });
  if (out.length === 0) return [];
  const question = encode({ v: 1, tasks: out.map((task) => task.name) } satisfies LaneQuestion);
  const living = workers
    .workers()
    .filter(
      ({ workerId, activities }) =>
        workerId !== deadId && activities.some((served) => served.queue === queue && served.name === name),
    );
  const answers = await Promise.all(
    living.map(async ({ workerId }) => {
      const subject = names.laneOfHoldings(workerId);
      const reply = await bus.request(subject, question, { timeoutMs: answerWithinMs });
      const holdings = reply.kind === "reply" ? decode(LaneHoldings, reply.body) : undefined;
      return holdings?.kind === "ok" ? new Set(holdings.value.missing) : undefined;
    }),
  );
  const orphans: number[] = [];
  for (const [place, { seq }] of out.entries()) {
    // A worker that does not answer may hold the task. If it is dead too, its tasks are handed back once its
    // death is proved.
    if (answers.some((missing) => missing === undefined)) return "unknown";
    if (answers.every((missing) => missing?.has(place))) orphans.push(seq);
  }
  return orphans;
}
