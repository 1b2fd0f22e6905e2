/** A large value that cannot be stored or fetched for a while is neither an attempt that failed nor work to be done again. */
import { expect, test } from "vitest";
import { z } from "zod";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const large = "x".repeat(400_000);
let runs = 0;
let during: () => void = () => undefined;

const write = defineActivity("write", {
  retry: { maxAttempts: 1 },
  run: async () => {
    runs++;
    during();
    return large;
  },
});
const measure = defineActivity("measure", {
  retry: { maxAttempts: 1 },
  run: async (_ctx, text: string) => {
    runs++;
    return text.length;
  },
});
const reader = defineSession("reader", {
  config: z.object({ text: z.string() }),
  init: async (_ctx, config) => ({ length: config.text.length }),
  calls: { size: call({ run: (state: { length: number }) => state.length }) },
});
const reads = defineOrchestration("reads", {
  run: async (ctx) => {
    await using session = await ctx.openSession(reader, { config: { text: large } });
    return await session.size();
  },
});
const writes = defineOrchestration("writes", { run: async (ctx) => (await ctx.run(write)).length });
const measures = defineOrchestration("measures", { run: async (ctx) => ctx.run(measure, large) });
const app = collectApp({ write, measure, reader, reads, writes, measures });

async function open(): Promise<World> {
  runs = 0;
  during = () => undefined;
  const world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  await world.orchestrator();
  return world;
}

test("a large output waits until the store takes it", async () => {
  const world = await open();
  await world.worker();
  during = () => {
    world.broker.storageFull = true;
  };
  const handle = await world.start("writes", null, "a");
  await world.clock.advance(30_000);
  expect(runs).toBe(1);
  world.broker.storageFull = false;
  expect(await world.run(handle.result(), 60_000)).toBe(large.length);
  expect(runs).toBe(1);
});

test.each(["measures", "reads"])(
  "%s: large values are fetched when the store answers again",
  async (name) => {
    const world = await open();
    const handle = await world.start(name, null, "a");
    await world.clock.advance(1_000);
    const blobs = [...world.broker.streams.keys()].find((stream) => stream.startsWith("OBJ_")) ?? "";
    world.broker.silent.add(blobs);
    await world.worker();
    await world.clock.advance(20_000);
    expect(runs).toBe(0);
    world.broker.silent.delete(blobs);
    expect(await world.run(handle.result(), 60_000)).toBe(large.length);
  },
);
