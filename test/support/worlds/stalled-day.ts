/**
 * A day on which one orchestrator's traffic is held up for about as long as its partitions' leases live, so that a
 * successor is at work when what it had sent arrives after all. Everything else is well; each instance must end.
 */
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { seededRandom, sleep } from "../../../shared/runtime/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

export interface StalledDay {
  seed: number;
  instances: number;
  alwaysReplay?: boolean;
  /** Messages are lost, doubled and late as well, clocks are wrong, a worker dies, and the server is away for a while. */
  rough?: boolean;
}

/** `held`: what it sends arrives late. `asleep`: the process stands still; what it had sent arrives, or is late too. */
const ways = ["held", "held", "asleep", "asleep, held"] as const;

function stalledApp(world: () => World, pace: () => number) {
  const step = defineActivity("step", {
    run: async (_ctx, n: number) => {
      // Some results are reported when their owner is cut off already, and are not yet in the inbox when it has a successor.
      await sleep(world().clock, pace() < 0.3 ? 300 + pace() * 2_700 : pace() * 40);
      return n + 1;
    },
  });
  return {
    step,
    steps: defineOrchestration("steps", {
      run: async (ctx, n: number) => {
        let at = 0;
        while (at < n) at = await ctx.run(step, at);
        return at;
      },
    }),
    naps: defineOrchestration("naps", {
      run: async (ctx, n: number) => {
        let at = 0;
        while (at < n) {
          await ctx.sleep(40 + at * 10);
          at = await ctx.run(step, at);
        }
        return at;
      },
    }),
    wide: defineOrchestration("wide", {
      run: async (ctx, n: number) => {
        const all = await Promise.all(Array.from({ length: n }, () => ctx.run(step, 0)));
        await Promise.race([ctx.run(step, 0), ctx.sleep(30)]);
        return all.reduce((sum, one) => sum + one, 0);
      },
    }),
    generations: defineOrchestration("generations", {
      run: async (ctx, input: number | { left: number; at: number }) => {
        const { left, at } = typeof input === "number" ? { left: input, at: 0 } : input;
        const next = await ctx.run(step, at);
        await ctx.sleep(25);
        return left <= 1 ? next : ctx.continueAsNew({ left: left - 1, at: next });
      },
    }),
  };
}

/** Returns the ids of those that did not end. Throws where one ended wrongly, or a history breaks a law. */
export async function liveStalledDay(
  day: StalledDay,
): Promise<{ world: World; stuck: string[]; way: string }> {
  const random = seededRandom(day.seed);
  let world: World;
  const app = collectApp(
    stalledApp(
      () => world,
      () => random.next(),
    ),
  );
  world = new World({
    ...day,
    app,
    faults: day.rough ? someFaults : { ...noFaults, latencyMs: [0, 4], scheduleDelayMs: [0, 250] },
    alwaysReplay: day.alwaysReplay ?? false,
  });
  await world.prepare();
  const clockAheadMs = day.rough ? 3_600_000 : 0;
  const owners = [
    await world.orchestrator(undefined, { clockAheadMs }),
    await world.orchestrator(undefined, { clockAheadMs: -clockAheadMs }),
  ];
  const worker = await world.worker();
  await world.worker();
  const names = ["steps", "steps", "naps", "wide", "generations"];
  const victim = owners[Math.floor(random.next() * owners.length)] ?? owners[0];
  const way = ways[Math.floor(random.next() * ways.length)] ?? "held";
  const beginAt = 100 + random.next() * 900;
  const lastsMs = 2_600 + random.next() * 2_200;
  world.clock.after(beginAt, () =>
    way === "held" ? victim?.bus.hold("outgoing") : victim?.pause(way === "asleep" ? "let through" : "held"),
  );
  world.clock.after(beginAt + lastsMs, () => victim?.resume());
  const size = 8;
  const ids: string[] = [];
  for (let i = 0; i < day.instances; i++) {
    const name = names[i % names.length] ?? "steps";
    const id = `${name}-${i}`;
    ids.push(id);
    await world.start(name, size, id);
    await world.clock.advance(random.next() * 10);
  }
  if (day.rough) {
    await world.clock.advance(random.next() * 2_000);
    worker.kill();
    await world.worker();
    await world.clock.advance(random.next() * 8_000);
    world.broker.stop();
    await world.clock.advance(random.next() * 20_000);
    world.broker.start();
    await world.clock.advance(60_000);
    // Well again: from now on everything must come to its end.
    world.broker.fate.faults = noFaults;
    await world.clock.advance(120_000);
  }
  const stuck: string[] = [];
  await world.clock.advance(60_000);
  for (const id of ids) {
    const status = await world.run(world.client.status(id));
    if (status.status === "running" || status.status === "pending") stuck.push(id);
    else if (status.status !== "completed" || status.output !== size)
      throw new Error(`seed ${day.seed}: ${id} ended ${JSON.stringify(status)}`);
    checkHistory((await world.history(id)) ?? []);
  }
  return { world, stuck, way };
}
