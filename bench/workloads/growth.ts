import { spawnSync } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { CpuMeter, cpuMsOf } from "../costs/process-cost.ts";
import { listMs, readyMs } from "../costs/start-times.ts";
import { judged } from "../report.ts";
import { alwaysOwnStreams, Rig } from "../rig.ts";
import { storeFinished } from "../stored-instances.ts";
import type { Bench, Workload } from "../workload.ts";
import { figuresOf, shortInstances } from "./w3-instances.ts";

const levels = { full: [0, 10_000, 100_000], quick: [0, 2000] };

type Figures = ReturnType<typeof figuresOf> & {
  cpuUs: Record<string, number>;
  listMs: number;
  orchestratorReadyMs: number;
};

/**
 * The floor is the rate with nothing stored, measured before and after the others, so that other load on the
 * machine affects all alike. Each level has a server of its own, because the measured instances leave streams
 * behind; in quick mode they are too few to matter.
 */
export const growth: Workload = {
  name: "growth",
  what: "W3's rate, `list` and the start of an orchestrator beside finished instances",
  layouts: "both-unless-quick",
  async run(bench) {
    const measured = bench.options.quick ? await onOneServer(bench) : await onServersOfTheirOwn(bench);
    const empty = measured.filter(({ stored }) => stored === 0).map(({ figures }) => figures);
    const floor = empty.reduce((sum, { instancesPerSecond }) => sum + instancesPerSecond, 0) / empty.length;
    for (const { stored, figures } of measured) {
      const ratio = figures.instancesPerSecond / floor;
      bench.emit({
        stored,
        ...figures,
        floorInstancesPerSecond: floor,
        ratio,
        ratioOf: "instancesPerSecond with nothing stored",
        // The readings of the empty server are what the others are judged by.
        ...(stored === 0 ? {} : judged(ratio, { atLeast: 0.8 })),
      });
    }
  },
};

async function onServersOfTheirOwn(bench: Bench): Promise<{ stored: number; figures: Figures }[]> {
  const measured = [];
  const { stored: most } = bench.options;
  for (const stored of [...(most === undefined ? levels.full : [0, most]), 0]) {
    await using rig = await warmRig(bench);
    measured.push({ stored, figures: await measure(bench, rig, stored) });
  }
  return measured;
}

async function onOneServer(bench: Bench): Promise<{ stored: number; figures: Figures }[]> {
  await using rig = await warmRig(bench);
  const measured = [];
  for (const stored of levels.quick) measured.push({ stored, figures: await measure(bench, rig, stored) });
  return measured;
}

async function warmRig(bench: Bench): Promise<Rig> {
  const rig = await Rig.start(bench.options, { layout: bench.layout, env: alwaysOwnStreams });
  await shortInstances(rig.client, bench.size(1000, 300));
  return rig;
}

async function measure(bench: Bench, rig: Rig, stored: number): Promise<Figures> {
  await storeFinished(rig, stored);
  // Stored instances count as finished long ago: nothing of them may still be on its way to the disk, nor be among
  // what the server is about to clean up.
  spawnSync("sync");
  await untilIdle(rig.nats.pid);
  const instances = bench.size(1000, 400);
  const meter = new CpuMeter(rig.pids);
  const figures = figuresOf(await meter.during(() => shortInstances(rig.client, instances)));
  return {
    ...figures,
    cpuUs: meter.perUnitUs(instances),
    listMs: await listMs(rig, 5),
    orchestratorReadyMs: await readyMs(rig, "orchestrator", 3),
  };
}

/** Waits until a process takes less than a fiftieth of a core for one second, but at most two minutes. */
async function untilIdle(pid: number): Promise<void> {
  for (let looked = 0; looked < 120; looked++) {
    const before = cpuMsOf(pid) ?? 0;
    await delay(1_000);
    if ((cpuMsOf(pid) ?? 0) - before < 20) return;
  }
}
