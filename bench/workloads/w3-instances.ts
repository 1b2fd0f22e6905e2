import type { Client } from "../../shared/sdk/index.ts";
import { machineMs } from "../clock.ts";
import { CpuMeter } from "../costs/process-cost.ts";
import { ServerCount } from "../costs/server-count.ts";
import type { FloorRun } from "../floor/floor.ts";
import { ratioOf } from "../report.ts";
import { inFlight, named, percentile } from "../stats.ts";
import type { Workload } from "../workload.ts";

const steps = 3;
const width = 64;

export const w3: Workload = {
  name: "W3",
  what: "instances of 3 activities, 64 in flight: instances and steps per second",
  layouts: "both",
  async run(bench) {
    const rig = await bench.rig();
    const floor = await bench.floor();
    const engineCpu = new CpuMeter(rig.pids);
    const floorCpu = new CpuMeter(floor.pids);
    const count = new ServerCount(rig.monitor);
    const instances = bench.size(2000, 500);
    const load = { inFlight: width, steps, width: 1 };
    // After a thousand the engine is as fast as it gets; with a stream each that takes too long for a quick run.
    const warmUp = bench.layout === "shared" ? 1000 : bench.size(1000, 300);
    await floor.run({ ...load, instances: warmUp });
    await shortInstances(rig.client, warmUp);
    const floorRun = async (count: number): Promise<FloorRun> => {
      await floor.cleanUp();
      const run = await floorCpu.during(() => floor.run({ ...load, instances: count }));
      await floor.cleanUp();
      return run;
    };
    const engineRun = (of: number) =>
      count.during(() => engineCpu.during(() => shortInstances(rig.client, of)));
    // What else the machine does should hit both alike, so they take turns. Not with streams per instance: those the
    // engine leaves behind would slow down the floor's part that follows.
    const parts = bench.layout === "shared" ? 4 : 1;
    const floorRuns: Latencies[] = [];
    const engineRuns: Latencies[] = [];
    for (let part = 0; part < parts; part++) {
      floorRuns.push(await floorRun(instances / parts));
      engineRuns.push(await engineRun(instances / parts));
    }
    const raw = figuresOf(merged(floorRuns));
    const figures = figuresOf(merged(engineRuns));
    bench.emit({
      n: instances,
      ...figures,
      ...named("floor", { ...raw }),
      ...ratioOf("stepsPerSecond", figures.stepsPerSecond, raw.stepsPerSecond, { atLeast: 0.6 }),
      ...count.perUnit(instances),
      cpuUs: engineCpu.perUnitUs(instances),
      floorCpuUs: floorCpu.perUnitUs(instances),
    });
  },
};

export interface Latencies {
  wallMs: number;
  latencies: number[];
}

/** W3's load on the engine; growth and memory use it too. */
export async function shortInstances(client: Client, instances: number): Promise<Latencies> {
  const startedAt = machineMs();
  const latencies = await inFlight(instances, width, async () => {
    const begun = machineMs();
    await runInstance(client);
    return machineMs() - begun;
  });
  return { wallMs: machineMs() - startedAt, latencies };
}

export async function runInstance(client: Client): Promise<void> {
  const handle = await client.start("steps", { n: steps });
  await handle.result();
}

export function figuresOf({ wallMs, latencies }: Latencies) {
  const instancesPerSecond = (latencies.length / wallMs) * 1000;
  return {
    instancesPerSecond,
    stepsPerSecond: instancesPerSecond * steps,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

const merged = (runs: readonly Latencies[]): Latencies => ({
  wallMs: runs.reduce((sum, run) => sum + run.wallMs, 0),
  latencies: runs.flatMap((run) => run.latencies),
});
