/**
 * Q1 in a whole engine: queries answered from memory and by replay, through deaths and hand-overs, and after
 * the end.
 */
import { expect, test } from "vitest";
import {
  collectApp,
  defineActivity,
  defineOrchestration,
  defineQuery,
} from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const quick = defineActivity("quick", { run: () => null });
const done = defineQuery<undefined, number>("done");
const app = collectApp({
  quick,
  talks: defineOrchestration("talks", {
    run: async (ctx) => {
      ctx.onQuery("size", () => 0);
      ctx.onUpdate("take", () => 1);
      ctx.onUpdate("add", () => 2);
      await ctx.waitForSignal("go");
    },
  }),
  steps: defineOrchestration("steps", {
    run: async (ctx, n: number) => {
      let count = 0;
      ctx.onQuery(done, () => count);
      ctx.onQuery("bad", async () => count);
      ctx.onQuery("large", () => "x".repeat(5_000_000));
      for (; count < n; count++) await ctx.run(quick, null);
      const word = await ctx.waitForSignal("go");
      return word;
    },
  }),
});

const worldOf = async (options: { alwaysReplay?: boolean; seed?: number } = {}) => {
  const world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, ...options });
  await world.prepare();
  return world;
};
const ask = (world: World, id: string, name = "done") => world.run(world.client.query(id, name), 60_000);
const eventsOf = async (world: World, id: string) => (await world.run(world.client.history(id))).length;

test.each([{ alwaysReplay: false }, { alwaysReplay: true }])("the owner answers: %o", async (options) => {
  const world = await worldOf(options);
  await world.orchestrator();
  await world.orchestrator();
  await world.worker();
  const ids = Array.from({ length: 6 }, (_, n) => `q${n}`);
  for (const id of ids) await world.start("steps", 3, id);
  await world.clock.advance(2000);
  for (const id of ids) expect(await ask(world, id)).toBe(3);
  const events = await eventsOf(world, "q0");
  const answers = await world.run(
    Promise.all(Array.from({ length: 50 }, () => world.client.query("q0", done))),
  );
  expect(answers).toEqual(Array.from({ length: 50 }, () => 3));
  expect(await eventsOf(world, "q0")).toBe(events);
});

test("a finished instance answers by replay, and one that is unknown does not", async () => {
  const world = await worldOf();
  await world.orchestrator();
  await world.worker();
  const handle = await world.start("steps", 2, "over");
  await world.signal("over", "go", "word");
  expect(await world.run(handle.result())).toBe("word");
  expect(await ask(world, "over")).toBe(2);
  await expect(ask(world, "over", "nope")).rejects.toMatchObject({
    code: "unknown_query",
    details: { names: ["bad", "done", "large"] },
  });
  await expect(ask(world, "ghost")).rejects.toMatchObject({ code: "instance_not_found" });
});

test.each([{ alwaysReplay: false }, { alwaysReplay: true }])(
  "whoever has not its code before them asks which messages it takes: %o",
  async (options) => {
    const world = await worldOf(options);
    await world.orchestrator();
    await world.worker();
    const handle = await world.start("talks", undefined, "t");
    const messages = () => world.run(world.client.messages("t"));
    const before = await eventsOf(world, "t").catch(() => 0);
    expect(await messages()).toEqual({ queries: ["size"], updates: ["add", "take"], signals: ["go"] });
    expect(await messages()).toMatchObject({ signals: ["go"] });
    if (before > 0) expect(await eventsOf(world, "t")).toBe(before);
    await world.signal("t", "go", null);
    await world.run(handle.result());
    expect(await messages()).toEqual({ queries: ["size"], updates: [], signals: [] });
    await expect(world.run(world.client.messages("ghost"))).rejects.toMatchObject({
      code: "instance_not_found",
    });
  },
);

test("an instance that was accepted a moment ago is waited for", async () => {
  const world = await worldOf();
  await world.orchestrator();
  const handle = await world.start("steps", 0, "new");
  expect(await world.run(handle.query(done))).toBe(0);
});

test("whoever takes the partitions over answers by replay", async () => {
  const world = await worldOf();
  const first = await world.orchestrator();
  await world.worker();
  await world.start("steps", 2, "moved");
  await world.clock.advance(2000);
  expect(await ask(world, "moved")).toBe(2);
  first.kill();
  const asked = world.client.query("moved", done, undefined, { timeout: "60s" });
  await world.orchestrator();
  expect(await world.run(asked, 60_000)).toBe(2);
});

test("nobody is there: a timeout that says so", async () => {
  const world = await worldOf();
  const asked = world.client.query("lonely", done, undefined, { timeout: "3s" });
  await expect(world.run(asked)).rejects.toMatchObject({ code: "query_timeout", retryable: true });
});

test("a query that misbehaves leaves the instance as it was", async () => {
  const world = await worldOf();
  await world.orchestrator();
  await world.worker();
  const handle = await world.start("steps", 1, "bad");
  await world.clock.advance(2000);
  const events = await eventsOf(world, "bad");
  await expect(ask(world, "bad", "bad")).rejects.toMatchObject({ code: "query_awaits" });
  await expect(ask(world, "bad", "large")).rejects.toMatchObject({ code: "payload_too_large" });
  expect(await ask(world, "bad")).toBe(1);
  expect(await eventsOf(world, "bad")).toBe(events);
  await world.signal("bad", "go", "on");
  expect(await world.run(handle.result())).toBe("on");
});
