/** Clocks that are wrong: of orchestrators, workers and watchers, of the server (F30). */
import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { removeInstance } from "../../support/worlds/remove-instance.ts";

const hour = 3_600_000;

const step = defineActivity("step", { run: () => "done" });

const app = collectApp({
  step,
  steps: defineOrchestration("steps", { run: (ctx) => ctx.run(step, null) }),
  "nap-when-told": defineOrchestration("nap-when-told", {
    run: async (ctx) => {
      await ctx.waitForSignal("go");
      const before = ctx.now();
      await ctx.sleep("5s");
      return ctx.now() - before;
    },
  }),
  ticks: defineOrchestration("ticks", {
    run: async (ctx, n: number) => {
      const seen = [ctx.now()];
      for (let i = 0; i < n; i++) {
        await ctx.waitForSignal("tick");
        seen.push(ctx.now());
      }
      return seen;
    },
  }),
});

async function open(cacheSize = 1000): Promise<World> {
  const world = new World({
    ...{ seed: 1, app, cacheSize },
    faults: { ...noFaults, latencyMs: [1, 3], scheduleDelayMs: [0, 250] },
  });
  await world.prepare();
  return world;
}

/** How long a sleep of five seconds lasts, by a clock that is right. */
async function napMs(world: World): Promise<number> {
  const handle = await world.start("nap-when-told", null, "a");
  await world.clock.advance(1_000);
  return sinceTold(world, () => world.run(handle.result(), 3 * hour));
}

async function sinceTold(world: World, ended: () => Promise<unknown>): Promise<number> {
  const from = world.clock.monotonic();
  await world.signal("a", "go", 1);
  await ended();
  return world.clock.monotonic() - from;
}

test.each([hour, -hour, 2_000, -2_000])(
  "defect 6: an owner %i ms off does not make a sleep longer or shorter",
  async (clockAheadMs) => {
    const world = await open();
    await world.orchestrator(undefined, { clockAheadMs });
    const ms = await napMs(world);
    expect(ms).toBeGreaterThanOrEqual(5_000);
    expect(ms).toBeLessThan(5_500);
    checkHistory((await world.history("a")) ?? []);
  },
);

test("defect 6: a turn of an owner an hour ahead holds nothing up under its successor", async () => {
  const world = await open();
  const first = await world.orchestrator(undefined, { clockAheadMs: hour });
  const handle = await world.start("nap-when-told", null, "a");
  await world.clock.advance(1_000);
  first.kill();
  await world.orchestrator();
  await world.clock.advance(5_000);
  const ms = await sinceTold(world, () => world.run(handle.result(), 3 * hour));
  expect(ms).toBeGreaterThanOrEqual(5_000);
  expect(ms).toBeLessThan(5_500);
});

test("defect 6: a clock that is set while its owner works changes nothing", async () => {
  const world = await open();
  const owner = await world.orchestrator();
  owner.clock.aheadMs = hour;
  expect(await napMs(world)).toBeLessThan(5_500);
});

test("defect 6: a worker an hour ahead runs the work of an instance begun anew under its id", async () => {
  const world = await open();
  await world.orchestrator();
  const worker = await world.worker();
  worker.clock.aheadMs = hour;
  for (const round of ["first", "second"]) {
    const handle = await world.start("steps", null, "a");
    expect(await world.run(handle.result(), 60_000), round).toBe("done");
    await world.clock.advance(1_000);
    await removeInstance(world, "a");
  }
});

test("defect 6: a watcher a month ahead removes nothing before its time", async () => {
  const world = await open();
  await world.orchestrator();
  await world.worker();
  const watcher = await world.watcher();
  watcher.clock.aheadMs = 30 * 24 * hour;
  const handle = await world.start("steps", null, "a");
  expect(await world.run(handle.result(), 60_000)).toBe("done");
  await world.clock.advance(hour);
  expect(await world.history("a")).toBeDefined();
  expect(await world.run(handle.result())).toBe("done");
});

test("F30: time does not run backwards in a history when the server's clock is set back", async () => {
  const world = await open();
  await world.orchestrator();
  const handle = await world.start("ticks", 3, "a");
  for (const [tick, setBackMs] of [0, 10_000, 60_000].entries()) {
    world.serverClock.aheadMs -= setBackMs;
    await world.clock.advance(40_000); // time to notice
    await world.signal("a", "tick", tick);
  }
  const seen = (await world.run(handle.result())) as number[];
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  checkHistory((await world.history("a")) ?? []);
});

test("CLOCK-1: a wake that comes early, because the server's clock was set back, is not the last", async () => {
  const world = await open(1);
  const first = await world.orchestrator();
  const handle = await world.start("nap-when-told", null, "a");
  await world.clock.advance(1_000);
  world.serverClock.aheadMs = 2_000;
  await world.signal("a", "go", 1); // the owner learns the time by this message
  await world.clock.advance(500);
  world.serverClock.aheadMs = 0;
  first.kill();
  await world.orchestrator();
  await world.clock.advance(5_000); // the wake has come, two seconds early
  // The instance leaves the memory of its owner, and its local timer with it.
  for (let i = 0; i < 12; i++) await world.start("ticks", 1, `other-${i}`);
  await world.clock.advance(200);
  expect(await world.run(handle.result(), 60_000)).toBeGreaterThanOrEqual(5_000);
  checkHistory((await world.history("a")) ?? []);
});
