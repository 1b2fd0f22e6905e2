/** Q2 in a whole engine: answered through deaths of owner and client, applied once, refused without trace. */
import { expect, test } from "vitest";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const quick = defineActivity("quick", { run: () => 1 });
const app = collectApp({
  quick,
  counter: defineOrchestration("counter", {
    run: async (ctx) => {
      const seen: unknown[] = [];
      ctx.onQuery("seen", () => seen);
      ctx.onUpdate("add", (n) => seen.push(n), {
        validate: (n) => {
          if (seen.includes(n)) throw new Error(`${n} is there already`);
        },
      });
      ctx.onUpdate("slow", async (n) => {
        await ctx.run(quick, null);
        return seen.push(n);
      });
      const word = await ctx.waitForSignal("go");
      if (word === "again") ctx.continueAsNew(null);
      return seen;
    },
  }),
});

const worldOf = async (options: { alwaysReplay?: boolean; seed?: number } = {}) => {
  const world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, ...options });
  await world.prepare();
  return world;
};
const kinds = async (world: World, id: string) =>
  (await world.run(world.client.history(id))).map(({ kind }) => kind);

test.each([{ alwaysReplay: false }, { alwaysReplay: true }])("is answered, in order: %o", async (options) => {
  const world = await worldOf(options);
  await world.orchestrator();
  await world.worker();
  const handle = await world.start("counter", null, "a");
  const sent = ["x", "y", "z"].map((n) => world.client.update("a", "add", n));
  expect(await world.run(Promise.all(sent))).toEqual([1, 2, 3]);
  const started = await world.run(world.client.startUpdate("a", "slow", "w", { id: "w-1" }));
  expect(started.updateId).toBe("w-1");
  expect(await world.run(started.result())).toBe(4);
  expect(await world.run(handle.update("slow", "again", { id: "w-1" }))).toBe(4);
  const before = await kinds(world, "a");
  await expect(world.run(handle.update("add", "x"))).rejects.toMatchObject({
    code: "update_refused",
    message: "x is there already",
  });
  expect(await kinds(world, "a")).toEqual(before);
  await world.signal("a", "go", null);
  expect(await world.run(handle.result())).toEqual(["x", "y", "z", "w"]);
  await expect(world.run(world.client.update("a", "add", "late"))).rejects.toMatchObject({
    code: "instance_ended",
  });
  await expect(world.run(world.client.update("ghost", "add", 1))).rejects.toMatchObject({
    code: "instance_not_found",
  });
});

const deaths: { point: FaultPoint; count: number }[] = (
  ["turn.before_append", "turn.after_append", "effects.half_published", "turn.after_effects"] as const
).flatMap((point) => [1, 2, 3].map((count) => ({ point, count })));

test.each(deaths)("survives its owner's death at $point, $count, and is applied once", async (death) => {
  const world = await worldOf();
  await world.orchestrator(death);
  await world.worker();
  const handle = await world.start("counter", null, "a");
  const quickly = world.client.update("a", "add", 1, { id: "u1", timeout: "120s" });
  const slowly = world.client.update("a", "slow", 2, { id: "u2", timeout: "120s" });
  await world.orchestrator();
  const answers = await world.run(Promise.all([quickly, slowly]), 120_000);
  expect(answers.sort()).toEqual([1, 2]);
  await world.signal("a", "go", null);
  expect(await world.run(handle.result(), 60_000)).toEqual([1, 2]);
  expect((await kinds(world, "a")).filter((kind) => kind === "update.accepted")).toHaveLength(2);
});

test("an id of an earlier execution is answered as it was, and not applied again", async () => {
  const world = await worldOf();
  await world.orchestrator();
  await world.worker();
  await world.start("counter", null, "a");
  expect(await world.run(world.client.update("a", "add", "first", { id: "u1" }))).toBe(1);
  await world.signal("a", "go", "again");
  await world.clock.advance(1000);
  expect(await world.run(world.client.update("a", "add", "second", { id: "u2" }))).toBe(1);
  expect(await world.run(world.client.update("a", "add", "first", { id: "u1" }))).toBe(1);
  expect(await world.run(world.client.query("a", "seen"))).toEqual(["second"]);
});

test("one that nobody answers in time says that it may be applied, and is answered when asked again", async () => {
  const world = await worldOf();
  const first = await world.orchestrator();
  await world.start("counter", null, "a");
  await world.clock.advance(500);
  await expect(
    world.run(world.client.update("a", "slow", 1, { id: "u1", timeout: "1s" })),
  ).rejects.toMatchObject({ code: "update_timeout", retryable: true, details: { updateId: "u1" } });
  await world.worker();
  first.kill();
  await world.orchestrator();
  expect(await world.run(world.client.update("a", "slow", 1, { id: "u1", timeout: "60s" }), 60_000)).toBe(1);
  expect((await kinds(world, "a")).filter((kind) => kind === "update.accepted")).toHaveLength(1);
});

test("a parked instance refuses, and takes updates again when its code is mended", async () => {
  const broken = collectApp({
    quick,
    counter: defineOrchestration("counter", { run: (ctx) => ctx.sleep(1) }),
  });
  const world = await worldOf();
  const first = await world.orchestrator();
  await world.start("counter", null, "a");
  await world.clock.advance(500);
  await world.run(first.stop());
  const second = await world.orchestrator(undefined, { app: broken });
  await expect(world.run(world.client.update("a", "add", 1))).rejects.toMatchObject({
    code: "instance_parked",
  });
  await world.run(second.stop());
  await world.orchestrator();
  expect(await world.run(world.client.update("a", "add", 1))).toBe(1);
});
