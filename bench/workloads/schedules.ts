import { rssBytesOf } from "../process-cost.ts";
import { inFlight, named, spread } from "../stats.ts";
import type { Workload } from "../workload.ts";

/** How late a time is seen to: the run's first turn less its time, with so many schedules beside it. */
export const schedules: Workload = {
  name: "schedules",
  what: "schedules that fire 100 a second: what they cost in memory, and how late they are",
  layouts: "one",
  async run(bench) {
    const rig = await bench.rig();
    const { client, pids } = rig;
    const n = bench.size(10_000, 1_000);
    const perSecond = bench.size(100, 50);
    const seconds = bench.size(30, 10);
    const everyMs = (n / perSecond) * 1000;
    const before = {
      orchestrator: rssBytesOf(pids.orchestrator ?? 0) ?? 0,
      nats: rssBytesOf(pids.nats ?? 0) ?? 0,
    };
    await inFlight(n, 64, (index) =>
      client.schedules.create(`bench-${index}`, {
        orchestration: "stamped-now" as never,
        every: everyMs,
        offset: Math.round((index * everyMs) / n),
        overlap: "allow",
      }),
    );
    // A round, so that all of them have fired once and wait for the next.
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const after = {
      orchestrator: rssBytesOf(pids.orchestrator ?? 0) ?? 0,
      nats: rssBytesOf(pids.nats ?? 0) ?? 0,
    };
    const from = Date.now();
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    const to = Date.now() - 2_000;
    const runs = await client.list({ name: "stamped-now", limit: 100_000 });
    const delays = runs.flatMap(({ instanceId, startedAt = 0 }) => {
      const time = timeOf(instanceId);
      return time >= from && time <= to ? [startedAt - time] : [];
    });
    bench.emit({
      n,
      perSecond: delays.length / ((to - from) / 1000),
      ...spread(delays),
      worstMs: Math.max(...delays),
      ...named("grownMb", {
        orchestrator: (after.orchestrator - before.orchestrator) / 1_048_576,
        nats: (after.nats - before.nats) / 1_048_576,
      }),
    });
    await inFlight(n, 64, (index) => client.schedules.delete(`bench-${index}`));
  },
};

/** `<schedule>-20261117T020000[500]Z` */
function timeOf(instanceId: string): number {
  const [, y, mo, d, h, mi, s, ms = "0"] =
    /-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})?Z$/.exec(instanceId) ?? [];
  return Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s), Number(ms));
}
