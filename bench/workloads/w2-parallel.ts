import { machineMs } from "../clock.ts";
import { ratioOf } from "../report.ts";
import { percentile } from "../stats.ts";
import type { Workload } from "../workload.ts";

export const w2: Workload = {
  name: "W2",
  what: "one instance, 1 000 activities in parallel: steps per second",
  layouts: "both-unless-quick",
  async run(bench) {
    const { client } = await bench.rig();
    const floor = await bench.floor();
    const n = 1000;
    const engineMs = async (): Promise<number> => {
      const startedAt = machineMs();
      const handle = await client.start("fan-out", { n });
      await handle.result();
      return machineMs() - startedAt;
    };
    const floorMs = async (): Promise<number> =>
      (await floor.run({ instances: 1, inFlight: 1, steps: n, width: n })).wallMs;
    await floorMs();
    const firstMs = await engineMs();
    const engine: number[] = [];
    const raw: number[] = [];
    for (let round = 0; round < bench.size(15, 5); round++) {
      raw.push(await floorMs());
      engine.push(await engineMs());
    }
    const totalMs = percentile(engine, 0.5);
    const floorTotalMs = percentile(raw, 0.5);
    const stepsPerSecond = (n / totalMs) * 1000;
    const floorStepsPerSecond = (n / floorTotalMs) * 1000;
    bench.emit({
      n,
      firstStepsPerSecond: (n / firstMs) * 1000,
      stepsPerSecond,
      totalMs,
      floorStepsPerSecond,
      floorTotalMs,
      ...ratioOf("stepsPerSecond", stepsPerSecond, floorStepsPerSecond),
    });
  },
};
