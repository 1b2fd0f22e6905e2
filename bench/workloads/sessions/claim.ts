import { ratioOf } from "../../report.ts";
import { intervals, named, percentile } from "../../stats.ts";
import type { Workload } from "../../workload.ts";

/**
 * `openSession` → active, with an `init` that does nothing. The floor is one step of the raw floor: append,
 * message out, message back. A claim has to do more: write the register before, take the lease in between.
 */
export const claim: Workload = {
  name: "claim",
  what: "opening a session until it is active",
  layouts: "one",
  async run(bench) {
    const { client } = await bench.sessionRig();
    const floor = await bench.sessionFloor();
    const n = bench.size(200, 60);
    const openings = async (count: number): Promise<number[]> =>
      (await (await client.start("stamped-openings", { n: count })).result()) as number[];
    await openings(20);
    await floor.run({ instances: 1, inFlight: 1, steps: 100, width: 1 });
    const engine = await openings(n);
    const run = await floor.run({ instances: 1, inFlight: 1, steps: n + 1, width: 1 });
    const raw = intervals(run.stamps[0] ?? []);
    const figures = { p50Ms: percentile(engine, 0.5), p99Ms: percentile(engine, 0.99) };
    const floorFigures = { p50Ms: percentile(raw, 0.5), p99Ms: percentile(raw, 0.99) };
    bench.emit({
      n,
      ...figures,
      ...named("floor", floorFigures),
      ...ratioOf("p50Ms", figures.p50Ms, floorFigures.p50Ms),
    });
  },
};
