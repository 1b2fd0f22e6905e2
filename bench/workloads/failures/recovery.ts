import { join } from "node:path";
import type { Recovery } from "../../app/doomed.ts";
import { machineMs } from "../../clock.ts";
import { judged } from "../../report.ts";
import { Rig } from "../../rig.ts";
import { percentile } from "../../stats.ts";
import type { Bench, Workload } from "../../workload.ts";
import { shortInstances } from "../w3-instances.ts";

/**
 * A process dies by SIGKILL: how long until the work that was with it goes on, while another one is alive, and where
 * the same one is started again at once. Work is with a worker by the lane (just begun, and for 10 ms) or by its queue.
 */
export const recovery: Workload = {
  name: "recovery",
  what: "worker or orchestrator killed until its work goes on",
  layouts: "one",
  async run(bench) {
    const rounds = bench.size(15, 5);
    const positions = [
      { position: "just begun", afterMs: 0, lane: "true" },
      { position: "10 ms into it", afterMs: 10, lane: "true" },
      { position: "by the queue", afterMs: 10, lane: "false" },
    ];
    for (const { position, afterMs, lane } of positions) {
      await using rig = await Rig.start(bench.options, {
        ...{ layout: bench.layout, workers: 2, watcher: true, env: { HOLDFAST_ORCHESTRATOR_LANE: lane } },
      });
      const beside = await times(rounds, () => another(rig, afterMs));
      bench.emit({ position, other: "alive", rounds, ...figuresOf(beside, 300) });
    }
    for (const { position, afterMs, lane } of positions) {
      await using rig = await Rig.start(bench.options, {
        ...{ layout: bench.layout, workers: 0, watcher: true, env: { HOLDFAST_ORCHESTRATOR_LANE: lane } },
      });
      const found = await times(rounds, () => again(rig, afterMs));
      const readyMs = percentile(
        found.map((one) => one.readyMs),
        0.5,
      );
      const afterReady = found.map((one) => one.afterReadyMs);
      bench.emit({
        position,
        other: "the same, started again",
        rounds,
        readyMs,
        ...figuresOf(afterReady, 100),
      });
    }
    bench.emit({ position: "orchestrator", other: "alive", ...(await deadOrchestrators(bench)) });
  },
};

const figuresOf = (ms: number[], atMost: number) => {
  const p50Ms = percentile(ms, 0.5);
  return { p50Ms, worstMs: Math.max(...ms), ...judged(p50Ms, { atMost }) };
};

async function times<T>(rounds: number, act: () => Promise<T>): Promise<T[]> {
  const all: T[] = [];
  for (let round = 0; round < rounds; round++) all.push(await act());
  return all;
}

let deaths = 0;
const dies = async (rig: Rig, afterMs: number): Promise<Recovery> => {
  const file = join(rig.folder, `death-${deaths++}`);
  return (await (await rig.client.start("recovered", { file, afterMs })).result()) as Recovery;
};

/** Returns the time from the death to the second attempt on the other worker. */
async function another(rig: Rig, afterMs: number): Promise<number> {
  const { killedAt, resumedAt } = await dies(rig, afterMs);
  await rig.startWorker(); // in the place of the dead one
  return resumedAt - killedAt;
}

/** How long the second process takes to be ready, and how long after that the second attempt begins. */
async function again(rig: Rig, afterMs: number): Promise<{ readyMs: number; afterReadyMs: number }> {
  const node = { WORKER_NODE_ID: "the-one" };
  const first = await rig.startWorker(node);
  const dying = dies(rig, afterMs);
  await first.gone();
  const second = await rig.startWorker(node);
  const readyAt = machineMs();
  const { killedAt, resumedAt } = await dying;
  await second.end("SIGTERM");
  return { readyMs: readyAt - killedAt, afterReadyMs: resumedAt - readyAt };
}

/** Instances of short steps on two orchestrators, of which one is killed: the longest that one of them stood still. */
async function deadOrchestrators(bench: Bench) {
  await using rig = await Rig.start(bench.options, { layout: bench.layout, workers: 2, watcher: true });
  const stood = await times(bench.size(8, 3), async () => {
    const victim = await rig.startOrchestrator();
    await shortInstances(rig.client, 300); // partitions move meanwhile
    const handles = await Promise.all(
      Array.from({ length: 32 }, () => rig.client.start("slow-steps", { n: 60, ms: 20 })),
    );
    await new Promise((resolve) => setTimeout(resolve, 400));
    const killedAt = machineMs();
    await victim.end("SIGKILL");
    const all = (await Promise.all(handles.map((handle) => handle.result()))) as number[][];
    // The first step after the death may have been with the worker before it.
    return Math.max(...all.map((stamps) => (stamps.filter((at) => at > killedAt)[1] ?? killedAt) - killedAt));
  });
  return { rounds: stood.length, stepMs: 20, ...figuresOf(stood, 500) };
}
