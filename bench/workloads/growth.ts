import { judged } from "../report.ts";
import { alwaysOwnStreams, Rig } from "../rig.ts";
import { storeFinished } from "../stored-instances.ts";
import type { Workload } from "../workload.ts";
import { figuresOf, shortInstances } from "./w3-instances.ts";

const levels = { full: [0, 10_000, 100_000], quick: [0, 2000] };

/**
 * The floor is the rate with nothing stored. Each level has a server of its own, because the measured instances leave
 * streams behind; in quick mode they are too few to matter.
 */
export const growth: Workload = {
  name: "growth",
  what: "W3's rate beside finished instances",
  layouts: "one",
  async run(bench) {
    const { quick } = bench.options;
    const warmUp = bench.size(1000, 300);
    let rig: Rig | undefined;
    let empty = Number.NaN;
    try {
      for (const stored of quick ? levels.quick : levels.full) {
        if (!quick || !rig) {
          await rig?.stop();
          rig = await Rig.start(bench.options, { layout: bench.layout, env: alwaysOwnStreams });
          await shortInstances(rig.client, warmUp);
        }
        await storeFinished(rig, stored);
        const figures = figuresOf(await shortInstances(rig.client, bench.size(1000, 400)));
        if (stored === 0) empty = figures.instancesPerSecond;
        const ratio = figures.instancesPerSecond / empty;
        bench.emit({
          stored,
          ...figures,
          floorInstancesPerSecond: empty,
          ratio,
          ratioOf: "instancesPerSecond with nothing stored",
          ...judged(ratio, { atLeast: 0.8 }),
        });
      }
    } finally {
      await rig?.stop();
    }
  },
};
