import type { Client } from "../../shared/sdk/index.ts";
import { machineMs } from "../clock.ts";
import type { FloorRun } from "../floor/floor.ts";
import { CpuMeter } from "../process-cost.ts";
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
    const instances = bench.size(2000, 500);
    const load = { inFlight: width, steps, width: 1 };
    const warmUp = bench.size(1000, 300);
    await floor.run({ ...load, instances: warmUp });
    await shortInstances(rig.client, warmUp);
    // Half of the floor before and half after: what else the machine does hits both alike.
    const half = () => floorCpu.during(() => floor.run({ ...load, instances: instances / 2 }));
    const before = await half();
    const engine = await engineCpu.during(() => shortInstances(rig.client, instances));
    const after = await half();
    const raw = figuresOf(merged(before, after));
    const figures = figuresOf(engine);
    bench.emit({
      n: instances,
      ...figures,
      ...named("floor", { ...raw }),
      ...ratioOf("stepsPerSecond", figures.stepsPerSecond, raw.stepsPerSecond, { atLeast: 0.6 }),
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
    const handle = await client.start("steps", { n: steps });
    await handle.result();
    return machineMs() - begun;
  });
  return { wallMs: machineMs() - startedAt, latencies };
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

const merged = (a: FloorRun, b: FloorRun): Latencies => ({
  wallMs: a.wallMs + b.wallMs,
  latencies: [...a.latencies, ...b.latencies],
});
