import { CpuMeter } from "../costs/process-cost.ts";
import { ratioOf } from "../report.ts";
import { intervals, named, spread } from "../stats.ts";
import type { Workload } from "../workload.ts";

/** Engine and floor take turns, as in W1. */
export const local: Workload = {
  name: "local",
  what: "one instance, local activities in sequence: time per step beside one publish",
  layouts: "both",
  async run(bench) {
    const rig = await bench.rig();
    const floor = await bench.floor();
    const cpu = new CpuMeter(rig.pids);
    const n = 1000;
    const rounds = bench.size(3, 1);
    const steps = async (count: number): Promise<number[]> => {
      const handle = await rig.client.start("stamped-locals", { n: count });
      return intervals((await handle.result()) as number[]);
    };
    await floor.appends(bench.size(1000, 500));
    await steps(bench.size(1000, 500));
    const engineMs: number[] = [];
    const floorMs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      floorMs.push(...(await floor.appends(n)));
      engineMs.push(...(await cpu.during(() => steps(n))));
    }
    const engine = spread(engineMs);
    const raw = spread(floorMs);
    bench.emit({
      n: n * rounds,
      ...engine,
      ...named("floor", { ...raw }),
      ...ratioOf("p50Ms", engine.p50Ms, raw.p50Ms, { atMost: 1.5 }),
      cpuUs: cpu.perUnitUs(n * rounds),
    });
  },
};
