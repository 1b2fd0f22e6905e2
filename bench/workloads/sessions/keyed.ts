import { fileURLToPath } from "node:url";
import { ratioOf } from "../../report.ts";
import { Rig } from "../../rig.ts";
import { intervals, named, spread } from "../../stats.ts";
import type { Workload } from "../../workload.ts";

const atATime = 100;
const probe = fileURLToPath(new URL("../../probe.js", import.meta.url));

interface Memory {
  heapUsed: number;
  rss: number;
}

/**
 * The floor of a keyed call is a warm call from an orchestration. Then many keys, and what they cost their
 * workers: read after a thousand keys and after all, each time with the garbage collected.
 */
export const keyed: Workload = {
  name: "keyed",
  what: "calls of one key from a client, and the workers' memory for many keys",
  layouts: "one",
  async run(bench) {
    await using rig = await Rig.start(bench.options, {
      layout: bench.layout,
      workers: 2,
      watcher: true,
      env: { WORKER_MAX_SESSIONS: "8000" },
      workerArgv: ["--expose-gc", "--import", probe],
    });
    const { client, workers } = rig;
    const n = bench.size(2_000, 400);
    const handle = await client.start("stamped-calls", { n });
    await handle.signal("go");
    const warm = spread(intervals((await handle.result()) as number[]));
    const session = client.session("held", { key: "one", ttl: 600_000 });
    for (let i = 0; i < 200; i++) await session.call("stamp", i);
    const callMs: number[] = [];
    for (let i = 0; i < n; i++) {
      const began = performance.now();
      await session.call("stamp", i);
      callMs.push(performance.now() - began);
    }
    const call = spread(callMs);
    const held = async () => {
      const all = await Promise.all(workers.map((worker) => worker.ask<Memory>("memory")));
      const sum = (of: keyof Memory) => all.reduce((total, one) => total + one[of], 0);
      return { heapUsed: sum("heapUsed"), rss: sum("rss") };
    };
    let next = 0;
    const openUpTo = async (end: number) => {
      const opener = async () => {
        for (let i = next++; i < end; i = next++)
          await client.session("held", { key: `many-${i}`, ttl: 3_600_000 }).call("stamp", i);
      };
      await Promise.all(Array.from({ length: atATime }, opener));
      next = end;
    };
    const keys = bench.size(10_000, 1_000);
    const first = keys / 10;
    await openUpTo(first);
    const before = await held();
    const began = performance.now();
    await openUpTo(keys);
    const openSeconds = (performance.now() - began) / 1000;
    const after = await held();
    const perKeyKb = (of: keyof Memory) => (after[of] - before[of]) / (keys - first) / 1024;
    bench.emit({
      n,
      ...call,
      ...named("floor", { ...warm }),
      ...ratioOf("p50Ms", call.p50Ms, warm.p50Ms),
      keys,
      keysPerSecond: (keys - first) / openSeconds,
      heapKbPerKey: perKeyKb("heapUsed"),
      rssKbPerKey: perKeyKb("rss"),
    });
  },
};
