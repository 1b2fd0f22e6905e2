import { rssBytesOf } from "../process-cost.ts";
import { ratioOf } from "../report.ts";
import { Rig } from "../rig.ts";
import { intervals, named, spread } from "../stats.ts";
import type { Workload } from "../workload.ts";

const atATime = 100;

/** The floor of a keyed call is a warm call from an orchestration. Then many keys, and what they cost their workers. */
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
    const held = () => workers.reduce((sum, { pid }) => sum + (rssBytesOf(pid) ?? Number.NaN), 0);
    const keys = bench.size(10_000, 1_000);
    const before = held();
    const began = performance.now();
    let next = 0;
    const opener = async () => {
      for (let i = next++; i < keys; i = next++)
        await client.session("held", { key: `many-${i}`, ttl: 3_600_000 }).call("stamp", i);
    };
    await Promise.all(Array.from({ length: atATime }, opener));
    const openSeconds = (performance.now() - began) / 1000;
    const perKeyBytes = (held() - before) / keys;
    bench.emit({
      n,
      ...call,
      ...named("floor", { ...warm }),
      ...ratioOf("p50Ms", call.p50Ms, warm.p50Ms),
      keys,
      keysPerSecond: keys / openSeconds,
      perKeyBytes,
    });
  },
};
