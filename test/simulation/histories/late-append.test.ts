/**
 * What an owner had sent before it was cut off arrives when its successor has done all there was to do: the successor
 * may have forgotten the instance by then, or have a successor of its own (T3).
 */
import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const later = defineActivity("later", { run: async (_ctx, n: number) => n + 1 });

async function open(cacheSize: number) {
  let world: World;
  const step = defineActivity("step", {
    run: async (_ctx, n: number) => {
      await sleep(world.clock, 800);
      return n + 1;
    },
  });
  const steps = defineOrchestration("steps", {
    run: async (ctx, n: number) => {
      let at = 0;
      while (at < n) at = await ctx.run(at === 0 ? step : later, at);
      return at;
    },
  });
  const waits = defineOrchestration("waits", { run: (ctx) => ctx.waitForSignal("go") });
  const app = collectApp({ step, later, steps, waits });
  world = new World({
    ...{ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, partitions: 1, cacheSize },
    // A successor that moves the history fences the late append.
    ownAfterMs: 0,
  });
  await world.prepare();
  return world;
}

/** The first owner's append of the first result is held up; its worker is dead, and the step waits in the queue. */
async function cutOff(world: World, n = 3) {
  const owner = await world.orchestrator();
  const worker = await world.worker();
  const handle = await world.start("steps", n, "late");
  await world.clock.advance(600);
  owner.bus.hold("outgoing");
  // The result reaches its owner, which cannot confirm it; the worker dies before it puts the result into the inbox itself.
  await world.clock.advance(1_000);
  worker.kill();
  const successor = await world.orchestrator();
  await world.clock.advance(8_000);
  const commits = async () => (await world.history("late"))?.length;
  const before = await commits();
  return { owner, successor, handle, before, commits };
}

test.each(["evicted", "handed over", "both"] as const)(
  "defect 1: an append that comes when the instance was forgotten is followed up: %s",
  async (how) => {
    const world = await open(how === "handed over" ? 1000 : 1);
    const { owner, successor, handle, before, commits } = await cutOff(world);
    if (how !== "handed over") {
      for (let i = 0; i < 5; i++) await world.start("waits", null, `other-${i}`);
      await world.clock.advance(2_000);
    }
    if (how !== "evicted") {
      await world.run(successor.stop());
      await world.orchestrator();
      await world.clock.advance(5_000);
    }
    owner.bus.letThrough("outgoing");
    owner.kill();
    await world.clock.advance(100);
    expect(await commits(), "the late append lands").toBe((before ?? 0) + 1);
    await world.worker();
    expect(await world.run(handle.result(), 120_000)).toBe(3);
    checkHistory((await world.history("late")) ?? []);
  },
);

test.each([
  ["the end of the instance", 1],
  ["the next step", 2],
] as const)("defect 1: an append that no message leads to is followed up: %s", async (_what, n) => {
  const world = await open(1000);
  const { owner, handle, before, commits } = await cutOff(world, n);
  owner.bus.letThrough("outgoing");
  owner.kill();
  await world.clock.advance(100);
  expect(await commits(), "the late append lands").toBe((before ?? 0) + 1);
  // No worker can run the first step again, which the successor takes for open: no report leads it to the history.
  await world.worker(undefined, { app: collectApp({ later }) });
  expect(await world.run(handle.result(), 120_000)).toBe(n);
  checkHistory((await world.history("late")) ?? []);
});
