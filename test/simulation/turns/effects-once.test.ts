/** Effects of one commit: published again after a death they are stored once (T2), and schedules go last (T3). */
import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let runs = 0;
const step = defineActivity("step", { run: () => ++runs });
const app = collectApp({
  step,
  steps: defineOrchestration("steps", { run: (ctx) => ctx.run(step, null) }),
  napsFirst: defineOrchestration("naps-first", {
    run: async (ctx) => {
      await ctx.sleep("1s");
      return ctx.run(step, null);
    },
  }),
});

async function open(): Promise<World> {
  runs = 0;
  const faults = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [250, 250] } as const;
  const world = new World({ seed: 1, app, faults });
  await world.prepare();
  return world;
}

test("T2: a task that the next owner publishes again is stored once, and runs once", async () => {
  const world = await open();
  await world.orchestrator({ point: "turn.after_effects", count: 1 });
  const handle = await world.start("steps", null, "a");
  await world.orchestrator();
  await world.clock.runUntil(() => world.count("commit.owed") === 1);
  await world.clock.advance(1_000);
  expect(world.everStored(world.names.activitiesStream)).toBe(1);
  await world.worker();
  expect(await world.run(handle.result())).toBe(1);
});

test("T3: a timer's schedule is there until everything its commit asked for is published", async () => {
  const world = await open();
  const owner = await world.orchestrator();
  const handle = await world.start("naps-first", null, "a");
  await world.clock.advance(500);
  world.broker.silent.add(world.names.activitiesStream); // the task of the next commit cannot be published
  const fired = world.count("turn.committed");
  await world.clock.runUntil(() => world.count("turn.committed") > fired);
  await world.clock.advance(20);
  owner.kill();
  world.broker.silent.delete(world.names.activitiesStream);
  await world.orchestrator();
  await world.worker();
  expect(await world.run(handle.result(), 60_000)).toBe(1);
});
