/** Signals that are sent again under the id their sender gave them, when the server has forgotten the first. */
import { expect, test } from "vitest";
import { updateIdHeader } from "../../../schemas/index.ts";
import { encode } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { carriedIds } from "../../../shared/replay/fold/state.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const heard = new Map<string, unknown[]>();
const app = collectApp({
  listens: defineOrchestration("listens", {
    run: async (ctx, input: { left: number; heard: unknown[]; anew: boolean }) => {
      const got = [...input.heard, await ctx.waitForSignal("go")];
      heard.set(ctx.instanceId, got);
      if (input.left <= 1) return got;
      if (input.anew) return ctx.continueAsNew({ ...input, left: input.left - 1, heard: got });
      for (let left = input.left - 1; left > 0; left--) got.push(await ctx.waitForSignal("go"));
      return got;
    },
  }),
  /** Continues as new several times before as many ids have come as an execution carries. */
  counts: defineOrchestration("counts", {
    run: async (ctx, before: { signals: number; updates: number }) => {
      let { signals, updates } = before;
      ctx.onUpdate("count", () => ++updates);
      for (let n = 0; n < carriedIds / 2; n++) {
        if ((await ctx.waitForSignal("go")) === "end") return { signals, updates };
        signals++;
      }
      return ctx.continueAsNew({ signals, updates });
    },
  }),
});

async function open(anew: boolean, alwaysReplay = false): Promise<World> {
  const world = new World({ seed: 1, app, faults: noFaults, alwaysReplay });
  await world.prepare();
  await world.orchestrator();
  for (const id of ["a", "b"]) await world.start("listens", { left: 3, heard: [], anew }, id);
  return world;
}

/** Gone with the server that was killed: it knows only what it still has. */
async function restart(world: World): Promise<void> {
  await world.clock.advance(100);
  world.broker.stop();
  await world.clock.advance(1_000);
  world.broker.start();
  await world.clock.advance(5_000);
}

const eachWay = [false, true].flatMap((anew) => [false, true].map((replay) => ({ anew, replay })));

test.each(eachWay)(
  "defect 18: a signal sent again after the server was killed is received once, continued $anew, replayed $replay",
  async ({ anew, replay }) => {
    const world = await open(anew, replay);
    const send = (id: string, messageId: string, value: unknown) =>
      world.run(world.client.signal(id, "go", value, { messageId }));
    for (const repetition of [1, 2, 3]) {
      await send("a", "payment-1", 1);
      if (repetition === 2) await world.clock.advance(600_000);
      await restart(world);
    }
    // To another instance it is another signal, at the same time or not.
    await send("b", "payment-1", "b1");
    await send("a", "payment-2", 2);
    await send("a", "payment-1", 1);
    await send("a", "payment-3", 3);
    expect(await world.run(world.client.result("a"))).toEqual([1, 2, 3]);
    expect(heard.get("b")).toEqual(["b1"]);
    expect(world.count("signal.unheard")).toBe(0);
  },
);

test("defect 18: plain NATS: the id the server knows is the sender's, unless a header says another", async () => {
  const world = await open(true);
  const subject = world.names.signal("a", "go");
  const publish = (value: unknown, msgId: string, headers = {}) =>
    world.run(world.outside.publish(subject, encode(value), { msgId, headers }));
  for (const value of [1, 1]) {
    await publish(value, "order-7-paid");
    await restart(world);
  }
  await publish(2, "any-1", { "Holdfast-Message-Id": "second" });
  await publish(2, "any-2", { "Holdfast-Message-Id": "second" });
  await publish(3, "x".repeat(200));
  await restart(world);
  await publish(3, "x".repeat(200));
  expect(await world.run(world.client.result("a"))).toEqual([1, 2, 3]);
  // Sent again after the end, its sender gets no error: the signal had been received.
  await publish(3, "x".repeat(200));
  await world.clock.advance(1_000);
  expect(world.count("signal.unheard")).toBe(0);
});

test.each([false, true])(
  "defect 18: an id is known for ever, also after more others than are carried over, replayed %s",
  async (alwaysReplay) => {
    const world = new World({ seed: 1, app, faults: noFaults, alwaysReplay });
    await world.prepare();
    const owner = await world.orchestrator();
    const handle = await world.start("counts", { signals: 0, updates: 0 }, "a");
    const signal = (messageId: string, value: unknown = 1) =>
      world.client.signal("a", "go", value, { messageId });
    const update = (id: string) =>
      world.outside.publish(world.names.update("a", "count"), encode(null), {
        headers: { [updateIdHeader]: id },
      });
    const many = Array.from({ length: carriedIds + 100 }, (_, n) => n);
    await world.run(Promise.all(many.map((n) => update(`u-${n}`))));
    for (const from of [0, 1]) await world.run(Promise.all(many.map((n) => signal(`p-${from}-${n}`))));
    await restart(world);
    const again = () => world.run(Promise.all([signal("p-0-0"), signal("p-0-99"), update("u-3")]));
    await again();
    // Known to the next owner too, and an execution later.
    owner.kill();
    await world.orchestrator();
    await again();
    await world.clock.advance(30_000);
    for (const from of ["q", "r"]) await world.run(Promise.all(many.map((n) => signal(`${from}-${n}`))));
    await again();
    await world.run(signal("q-0"));
    expect(await world.run(world.client.update("a", "count", null, { id: "u-3" }))).toBe(4);
    await world.run(signal("last", "end"));
    expect(await world.run(handle.result())).toEqual({ signals: 4 * many.length, updates: many.length });
  },
);

test("an id that cannot go into a header is refused", async () => {
  const world = await open(false);
  const sending = world.client.signal("a", "go", 1, { messageId: "two words" });
  await expect(world.run(sending)).rejects.toMatchObject({ code: "invalid_id" });
});
