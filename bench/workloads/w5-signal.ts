import { connectBus, encode, subjects } from "../../shared/bus/index.ts";
import { silent } from "../../shared/runtime/index.ts";
import type { Client } from "../../shared/sdk/index.ts";
import { machineMs } from "../clock.ts";
import { ratioOf } from "../report.ts";
import { inFlight, named, percentile } from "../stats.ts";
import { untilRunning } from "../waiting.ts";
import type { Workload } from "../workload.ts";

/**
 * From `client.signal` to the orchestration's code continuing, and to the start of the next activity;
 * `publishedP50Ms`: the same for a plain publish that waits for no answer. The floor does the same with a start: a stored inbox message, an append, a task, a worker.
 */
export const w5: Workload = {
  name: "W5",
  what: "signal to continuation, one at a time",
  layouts: "both-unless-quick",
  async run(bench) {
    const { client, nats } = await bench.rig();
    const floor = await bench.floor();
    const publisher = await connectBus({ url: nats.url, announce: silent });
    const byPublish = async (id: string) => publisher.send(subjects().signal(id, "go"), encode(null));
    const byClient = (id: string) => client.signal(id, "go");
    const rounds = bench.size(200, 100);
    await engineRounds(client, 20, byClient);
    await engineRounds(client, 20, byPublish);
    await floor.run({ instances: 20, inFlight: 1, steps: 1, width: 1 });
    const engine = await engineRounds(client, rounds, byClient);
    const published = await engineRounds(client, rounds, byPublish);
    const raw = await floor.signals(rounds);
    await publisher.close();
    const code = engine.map(({ code }) => code);
    const activity = engine.map(({ activity }) => activity);
    const figures = { p50Ms: percentile(code, 0.5), p99Ms: percentile(code, 0.99) };
    const floorFigures = { p50Ms: percentile(raw.received, 0.5), p99Ms: percentile(raw.received, 0.99) };
    bench.emit({
      n: rounds,
      ...figures,
      ...named("floor", floorFigures),
      publishedP50Ms: percentile(
        published.map((one) => one.code),
        0.5,
      ),
      nextActivityP50Ms: percentile(activity, 0.5),
      nextActivityP99Ms: percentile(activity, 0.99),
      floorNextActivityP50Ms: percentile(raw.worked, 0.5),
      floorNextActivityP99Ms: percentile(raw.worked, 0.99),
      ...ratioOf("p50Ms", figures.p50Ms, floorFigures.p50Ms),
    });
  },
};

async function engineRounds(
  client: Client,
  rounds: number,
  signal: (instanceId: string) => Promise<unknown>,
): Promise<{ code: number; activity: number }[]> {
  const handles = await inFlight(rounds, 32, () => client.start("stamped-signal", null));
  await inFlight(rounds, 32, (index) => untilRunning(client, handles[index]?.instanceId ?? ""));
  const samples: { code: number; activity: number }[] = [];
  for (const handle of handles) {
    const sentAt = machineMs();
    await signal(handle.instanceId);
    const stamps = (await handle.result()) as { code: number; activity: number };
    samples.push({ code: stamps.code - sentAt, activity: stamps.activity - sentAt });
  }
  return samples;
}
