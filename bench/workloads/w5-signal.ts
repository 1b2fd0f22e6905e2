import type { Client } from "../../shared/sdk/index.ts";
import { machineMs } from "../clock.ts";
import { ratioOf } from "../report.ts";
import { inFlight, named, percentile } from "../stats.ts";
import { untilRunning } from "../waiting.ts";
import type { Workload } from "../workload.ts";

/**
 * From `client.signal` to the orchestration's code continuing, and to the start of the next activity. The
 * floor does the same with a start: a stored inbox message, an append, a task, a worker.
 */
export const w5: Workload = {
  name: "W5",
  what: "signal to continuation, one at a time",
  layouts: "both-unless-quick",
  async run(bench) {
    const { client } = await bench.rig();
    const floor = await bench.floor();
    const rounds = bench.size(200, 100);
    await engineRounds(client, 20);
    await floor.run({ instances: 20, inFlight: 1, steps: 1, width: 1 });
    const engine = await engineRounds(client, rounds);
    const raw = await floor.signals(rounds);
    const code = engine.map(({ code }) => code);
    const activity = engine.map(({ activity }) => activity);
    const figures = { p50Ms: percentile(code, 0.5), p99Ms: percentile(code, 0.99) };
    const floorFigures = { p50Ms: percentile(raw.heard, 0.5), p99Ms: percentile(raw.heard, 0.99) };
    bench.emit({
      n: rounds,
      ...figures,
      ...named("floor", floorFigures),
      nextActivityP50Ms: percentile(activity, 0.5),
      nextActivityP99Ms: percentile(activity, 0.99),
      floorNextActivityP50Ms: percentile(raw.worked, 0.5),
      floorNextActivityP99Ms: percentile(raw.worked, 0.99),
      ...ratioOf("p50Ms", figures.p50Ms, floorFigures.p50Ms),
    });
  },
};

async function engineRounds(client: Client, rounds: number): Promise<{ code: number; activity: number }[]> {
  const handles = await inFlight(rounds, 32, () => client.start("stamped-signal", null));
  await inFlight(rounds, 32, (index) => untilRunning(client, handles[index]?.instanceId ?? ""));
  const samples: { code: number; activity: number }[] = [];
  for (const handle of handles) {
    const sentAt = machineMs();
    await handle.signal("go");
    const stamps = (await handle.result()) as { code: number; activity: number };
    samples.push({ code: stamps.code - sentAt, activity: stamps.activity - sentAt });
  }
  return samples;
}
