import { judged } from "../report.ts";
import { Rig } from "../rig.ts";
import { storeFinished } from "../stored-instances.ts";
import type { Workload } from "../workload.ts";
import { figuresOf, shortInstances } from "./w3-instances.ts";

/** A server of its own for each: the floor is the rate with nothing stored. */
export const growth: Workload = {
  name: "growth",
  what: "W3's rate beside finished instances",
  bothLayouts: false,
  async run(bench) {
    const levels = bench.options.quick ? [0, 2000] : [0, 10_000, 100_000];
    const instances = bench.size(1000, 400);
    const warmUp = bench.size(1000, 300);
    let empty = Number.NaN;
    for (const stored of levels) {
      const rig = await Rig.start(bench.options, { layout: bench.layout });
      try {
        await shortInstances(rig.client, warmUp);
        await storeFinished(rig, stored);
        const { instancesPerSecond, p50Ms, p99Ms } = figuresOf(await shortInstances(rig.client, instances));
        if (stored === 0) empty = instancesPerSecond;
        const ratio = instancesPerSecond / empty;
        bench.emit({
          stored,
          instancesPerSecond,
          p50Ms,
          p99Ms,
          floorInstancesPerSecond: empty,
          ratio,
          ratioOf: "instancesPerSecond with nothing stored",
          ...judged(ratio, { atLeast: 0.8 }),
        });
      } finally {
        await rig.stop();
      }
    }
  },
};
