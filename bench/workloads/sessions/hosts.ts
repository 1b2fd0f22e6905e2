import { judged } from "../../report.ts";
import { intervals, named, spread } from "../../stats.ts";
import type { Workload } from "../../workload.ts";

/** The floor of a call into Python is the same call into a Node process. The two take turns. */
export const hosts: Workload = {
  name: "hosts",
  what: "a warm call into a Python host against a Node process host; CPU-bound calls on two threads of one host",
  layouts: "one",
  async run(bench) {
    const { client } = await bench.rig();
    const n = bench.size(500, 150);
    const calls = async (type: string): Promise<number[]> => {
      const handle = await client.start("hosted-calls", { type, n });
      return intervals((await handle.result()) as number[]);
    };
    const python: number[] = [];
    const node: number[] = [];
    await calls("node-host");
    await calls("python-host");
    for (let round = 0; round < bench.size(4, 2); round++) {
      node.push(...(await calls("node-host")));
      python.push(...(await calls("python-host")));
    }
    const moreMs = spread(python).p50Ms - spread(node).p50Ms;
    bench.emit({
      n: python.length,
      ...spread(python),
      ...named("floor", { ...spread(node) }),
      moreMs,
      ...judged(moreMs, { atMost: 0.3 }),
    });
    const handle = await client.start("compute-at-once", { n: 4, ms: 300 });
    const { oneMs, twoMs } = (await handle.result()) as { oneMs: number; twoMs: number };
    bench.emit({ calls: 4, ms: 300, oneThreadMs: oneMs, twoThreadsMs: twoMs });
  },
};
