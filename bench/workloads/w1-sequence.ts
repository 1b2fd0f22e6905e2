import { CpuMeter } from "../costs/process-cost.ts";
import { ratioOf } from "../report.ts";
import { intervals, named, spread } from "../stats.ts";
import type { Workload } from "../workload.ts";

/** Engine and floor take turns, so that other load on the machine affects both alike. */
export const w1: Workload = {
  name: "W1",
  what: "one instance, activities in sequence: time per step",
  layouts: "both",
  async run(bench) {
    const rig = await bench.rig();
    const floor = await bench.floor();
    const engineCpu = new CpuMeter(rig.pids);
    const floorCpu = new CpuMeter(floor.pids);
    const n = 1000;
    const rounds = bench.size(3, 1);
    const engineSteps = async (steps: number): Promise<number[]> => {
      const handle = await rig.client.start("stamped-steps", { n: steps });
      return intervals((await handle.result()) as number[]);
    };
    const floorSteps = async (steps: number, direct = false): Promise<number[]> => {
      const run = await floor.run({ instances: 1, inFlight: 1, steps, width: 1, direct });
      return intervals(run.stamps[0] ?? []);
    };
    await floorSteps(bench.size(1000, 500));
    await floorSteps(bench.size(1000, 500), true);
    const first = spread(await engineSteps(bench.size(1000, 500)));
    const engineMs: number[] = [];
    const floorMs: number[] = [];
    const directMs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      directMs.push(...(await floorSteps(n, true)));
      floorMs.push(...(await floorCpu.during(() => floorSteps(n))));
      engineMs.push(...(await engineCpu.during(() => engineSteps(n))));
    }
    const engine = spread(engineMs);
    const raw = spread(floorMs);
    const oneWriteP50Ms = spread(directMs).p50Ms;
    bench.emit({
      n: n * rounds,
      ...engine,
      ...named("floor", { ...raw }),
      ...ratioOf("meanMs", engine.meanMs, raw.meanMs, { atMost: 1.4 }),
      ratioP50: engine.p50Ms / raw.p50Ms,
      oneWriteP50Ms,
      firstP50Ms: first.p50Ms,
      inWrites: { first: first.p50Ms / oneWriteP50Ms, warm: engine.p50Ms / oneWriteP50Ms },
      cpuUs: engineCpu.perUnitUs(n * rounds),
      floorCpuUs: floorCpu.perUnitUs(n * rounds),
    });
  },
};
