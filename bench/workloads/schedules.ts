import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Client } from "../../shared/sdk/index.ts";
import { Rig } from "../rig.ts";
import { inFlight, named, spread } from "../stats.ts";
import type { Workload } from "../workload.ts";

const probe = fileURLToPath(new URL("../probe.js", import.meta.url));
/**
 * How late runs begin: the time of the run's first turn less the time of its schedule, beside so many
 * schedules.
 */
export const schedules: Workload = {
  name: "schedules",
  what: "schedules that fire 100 a second: what they cost in memory, and how late they are",
  layouts: "one",
  async run(bench) {
    await using rig = await Rig.start(bench.options, {
      layout: bench.layout,
      orchestratorArgv: ["--expose-gc", "--import", probe],
    });
    const { client } = rig;
    const n = bench.size(10_000, 1_000);
    const perSecond = bench.size(100, 50);
    const seconds = bench.size(30, 10);
    const everyMs = (n / perSecond) * 1000;
    const create = (name: string) => (index: number) =>
      client.schedules.create(`${name}-${index}`, {
        orchestration: "stamped-now" as never,
        every: everyMs,
        offset: Math.round((index * everyMs) / n),
        overlap: "allow",
      });
    // Warm up: the costs of any first load do not count as those of schedules.
    const warm = bench.size(3_000, 300);
    await inFlight(warm, 64, create("warm"));
    await allKept(client, "warm", warm);
    await inFlight(warm, 64, (index) => client.schedules.delete(`warm-${index}`));
    await delay(bench.size(135_000, 1_000));
    const before = await memoryOf(rig);
    await inFlight(n, 64, create("bench"));
    await allKept(client, "bench", n);
    // Long enough that the server has let go of what it had read, and has forgotten the ids of these messages.
    await delay(bench.size(135_000, 3_000));
    const after = await memoryOf(rig);
    const from = Date.now();
    await delay(seconds * 1000);
    const to = Date.now() - 2_000;
    const runs = await client.list({ name: "stamped-now", limit: 100_000 });
    const delays = runs.flatMap(({ instanceId, startedAt = 0 }) => {
      const time = timeOf(instanceId);
      return time >= from && time <= to ? [startedAt - time] : [];
    });
    const grownMb = (which: keyof Memory) => (after[which] - before[which]) / 1_048_576;
    const heap = grownMb("heap");
    const nats = grownMb("nats");
    const { p99Ms, ...lateness } = spread(delays);
    bench.emit({
      n,
      perSecond: delays.length / ((to - from) / 1000),
      ...lateness,
      p99Ms,
      worstMs: Math.max(...delays),
      ...named("grownMb", { heap, orchestrator: grownMb("orchestrator"), nats }),
      aim: "heap and server <= 50 MB, p99Ms <= 300",
      met: heap + nats <= 50 && p99Ms <= 300,
    });
  },
};

interface Memory {
  /** The orchestrator's heap in use (`heap`) and its resident memory (`orchestrator`). */
  heap: number;
  orchestrator: number;
  /** The server's heap in use. */
  nats: number;
}

/** Reads the memory in use after a garbage collection. */
async function memoryOf(rig: Rig): Promise<Memory> {
  const own = await rig.orchestrator?.ask<{ heapUsed: number; rss: number }>("memory");
  return {
    heap: own?.heapUsed ?? Number.NaN,
    orchestrator: own?.rss ?? Number.NaN,
    nats: await rig.natsHeapBytes(),
  };
}

/** Creating one means that it is stored; its keeper begins when its turn comes. */
async function allKept(client: Client, name: string, count: number): Promise<void> {
  const isKept = async (index: number) =>
    (await client.schedules.describe(`${name}-${index}`).catch(() => undefined))?.next?.length;
  for (let index = count - 64; index < count; index++) while (!(await isKept(index))) await delay(100);
}

/** `<schedule>-20261117T020000[500]Z` */
function timeOf(instanceId: string): number {
  const [, y, mo, d, h, mi, s, ms = "0"] =
    /-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})?Z$/.exec(instanceId) ?? [];
  return Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s), Number(ms));
}
