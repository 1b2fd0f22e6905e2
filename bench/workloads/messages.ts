import type { Client } from "../../shared/sdk/index.ts";
import { machineMs } from "../clock.ts";
import { inFlight, percentile } from "../stats.ts";
import { untilRunning } from "../waiting.ts";
import type { Workload } from "../workload.ts";

/**
 * Queries and updates as a client sees them: a query of an instance in memory and of an ended one, which is
 * replayed for each query; an update from sending it to its answer, beside a signal from sending it to the
 * code continuing; and what a thousand queries a second cost the turns of the queried instance.
 */
export const messages: Workload = {
  name: "messages",
  what: "query live and by replay of 1 000 events, update beside signal",
  layouts: "one",
  async run(bench) {
    const { client } = await bench.rig();
    const rounds = bench.size(500, 100);
    const live = await client.start("asked", { steps: 0 });
    await timed(50, () => client.query(live.instanceId, "done"));
    const liveMs = await timed(rounds, () => client.query(live.instanceId, "done"));
    const over = await client.start("asked", { steps: 500 });
    await over.signal("go");
    await over.result();
    const replayMs = await timed(bench.size(100, 20), () => client.query(over.instanceId, "done"));
    await timed(20, () => client.update(live.instanceId, "add", 1));
    const updateMs = await timed(rounds, () => client.update(live.instanceId, "add", 1));
    const signalMs = await signals(client, bench.size(200, 50));
    const alone = await turns(client, bench.size(1000, 200), false);
    const askedTurns = await turns(client, bench.size(1000, 200), true);
    const [update, signal] = [percentile(updateMs, 0.5), percentile(signalMs, 0.5)];
    bench.emit({
      queryP50Ms: percentile(liveMs, 0.5),
      queryP99Ms: percentile(liveMs, 0.99),
      replayedQueryP50Ms: percentile(replayMs, 0.5),
      replayedQueryP99Ms: percentile(replayMs, 0.99),
      updateP50Ms: update,
      updateP99Ms: percentile(updateMs, 0.99),
      signalP50Ms: signal,
      updateToSignal: update / signal,
      stepMs: alone.stepMs,
      askedStepMs: askedTurns.stepMs,
      queriesPerSecond: askedTurns.queriesPerSecond,
    });
  },
};

async function timed(rounds: number, act: () => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = performance.now();
    await act();
    samples.push(performance.now() - before);
  }
  return samples;
}

/** Times from sending a signal until the orchestration's code continues, as in W5. */
async function signals(client: Client, rounds: number): Promise<number[]> {
  const handles = await inFlight(rounds, 32, () => client.start("stamped-signal", null));
  await inFlight(rounds, 32, (index) => untilRunning(client, handles[index]?.instanceId ?? ""));
  const samples: number[] = [];
  for (const handle of handles) {
    const sentAt = machineMs();
    await handle.signal("go");
    samples.push(((await handle.result()) as { code: number }).code - sentAt);
  }
  return samples;
}

/** How long one step takes, with and without a query every millisecond. */
async function turns(
  client: Client,
  steps: number,
  queried: boolean,
): Promise<{ stepMs: number; queriesPerSecond: number }> {
  const handle = await client.start("asked", { steps });
  await handle.signal("go");
  let over = false;
  let queries = 0;
  const began = performance.now();
  const asking = (async () => {
    while (queried && !over) {
      const due = performance.now() - began;
      const now: Promise<unknown>[] = [];
      for (; queries < due; queries++) now.push(client.query(handle.instanceId, "done"));
      await Promise.all(now);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  const times = (await handle.result()) as number[];
  over = true;
  await asking;
  const ms = (times.at(-1) ?? 0) - (times[0] ?? 0);
  return { stepMs: ms / steps, queriesPerSecond: (queries / ms) * 1000 };
}
