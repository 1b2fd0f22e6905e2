/**
 * Large values lie in the object store under their owner's id and are removed with it: an instance that
 * accepts one owns a copy.
 */
import { expect, test } from "vitest";
import { inboxHeaders } from "../../../services/orchestrator/parse-inbox.ts";
import { Payloads } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const large = "x".repeat(400_000);

const makesLarge = defineOrchestration("makes-large", { run: async () => large });
const measures = defineOrchestration("measures", {
  run: async (ctx, text: string) => {
    await ctx.waitForSignal("go");
    return text.length;
  },
});
const asksChild = defineOrchestration("asks-child", {
  run: async (ctx) => {
    const text = await ctx.child(makesLarge, null, { id: "child" });
    await ctx.waitForSignal("go");
    return text.length;
  },
});
const leavesChild = defineOrchestration("leaves-child", {
  run: async (ctx) => {
    ctx.spawn(measures, large, { id: "left" });
  },
});
const hears = defineOrchestration("hears", {
  run: async (ctx, text: string) => {
    const heard = await ctx.waitForSignal<string>("text");
    await ctx.waitForSignal("go");
    return [text.length, heard.length];
  },
});
const app = collectApp({ hears, makesLarge, measures, asksChild, leavesChild });

async function open(): Promise<World> {
  const world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  return world;
}

/** What retention does to the blobs of an instance that is over. */
async function forget(world: World, instanceId: string): Promise<void> {
  for (const { key } of await world.run(world.outside.blobs.list(`${instanceId}/`))) {
    await world.run(world.outside.blobs.delete(key));
  }
}

async function replayed(world: World, instanceId: string): Promise<unknown> {
  await world.orchestrator();
  await world.signal(instanceId, "go", 1);
  return world.run(world.client.result(instanceId), 60_000);
}

test("defect 4: a parent keeps the large output of a child that retention has removed", async () => {
  const world = await open();
  const owner = await world.orchestrator();
  await world.start("asks-child", null, "parent");
  await world.clock.advance(5_000);
  await world.run(world.client.result("child"), 60_000);
  await world.run(owner.stop());
  await forget(world, "child");
  expect(await replayed(world, "parent")).toBe(large.length);
});

test("defect 4: a detached child keeps the large input of a parent that retention has removed", async () => {
  const world = await open();
  const owner = await world.orchestrator();
  const handle = await world.start("leaves-child", null, "parent");
  await world.run(handle.result(), 60_000);
  await world.clock.advance(5_000);
  await world.run(owner.stop());
  await forget(world, "parent");
  expect(await replayed(world, "left")).toBe(large.length);
});

test("defect 4: an instance keeps large values that another client had stored under an id of its own", async () => {
  const world = await open();
  const { outside, names } = world;
  const stored = await world.run(new Payloads(outside.blobs).wrap(large, "somebody"));
  if (!("blob" in stored)) throw new Error("not large enough");
  const publish = (subject: string) =>
    world.run(
      outside.publish(subject, new Uint8Array(), {
        headers: { [inboxHeaders.blob]: JSON.stringify(stored.blob) },
      }),
    );
  const owner = await world.orchestrator();
  await publish(names.start("a", "hears"));
  await publish(names.signal("a", "text"));
  await world.clock.advance(5_000);
  await world.run(owner.stop());
  await forget(world, "somebody");
  expect(await replayed(world, "a")).toEqual([large.length, large.length]);
});

/** As if its owner had lived on for a moment: nothing comes to it again. */
async function acknowledged(world: World, instanceId: string): Promise<void> {
  const { inboxStream, inboxOf } = world.names;
  const { lastSeq = 0 } = (await world.run(world.outside.streamInfo(inboxStream))) ?? {};
  await world.run(world.outside.purge(inboxStream, inboxOf(instanceId), lastSeq));
}

/** The owner dies when its message is stored and not yet consumed. */
const diesAfterTurn = (count: number) => ({ point: "turn.after_effects" as const, count });

test("defect 4: a parent gets the large output of a child that was removed before the parent took it", async () => {
  const world = await open();
  const owner = await world.orchestrator(diesAfterTurn(2));
  await world.start("asks-child", null, "parent");
  await world.clock.advance(1_000);
  expect(owner.bus.killed).toBe(true);
  await acknowledged(world, "child");
  await forget(world, "child");
  expect(await replayed(world, "parent")).toBe(large.length);
});

test("defect 4: a detached child gets the large input of a parent that was removed before it began", async () => {
  const world = await open();
  const owner = await world.orchestrator(diesAfterTurn(1));
  await world.start("leaves-child", null, "parent");
  await world.clock.advance(1_000);
  expect(owner.bus.killed).toBe(true);
  await acknowledged(world, "parent");
  await forget(world, "parent");
  expect(await replayed(world, "left")).toBe(large.length);
});
