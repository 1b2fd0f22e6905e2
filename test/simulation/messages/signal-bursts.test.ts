/** Many signals at once, and a delivery that is lost: each is applied once, in the order the server took them. */
import { expect, test } from "vitest";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const count = 10_000;
const app = collectApp({
  listens: defineOrchestration("listens", {
    async run(ctx, heard: { sum: number; next: number; outOfOrder: number }) {
      let { sum, next, outOfOrder } = heard;
      for await (const n of ctx.signals<number>("n")) {
        if (n !== next) outOfOrder++;
        next = n + 1;
        sum += n;
        if (next === count) return { sum, outOfOrder };
        // Long lives begin anew: what is not read yet is carried over, in order.
        if (ctx.historyLength > 3_000) return ctx.continueAsNew({ sum, next, outOfOrder });
      }
      throw new Error("unreachable: signals never end");
    },
  }),
  pair: defineOrchestration("pair", {
    run: async (ctx) => [await ctx.waitForSignal("n"), await ctx.waitForSignal("n")],
  }),
});

test.each([
  ["nobody dies", undefined],
  ["their owner dies twice", "turn.after_append"],
] as const)("10 000 signals at once are applied in order, each once: %s", async (_, point) => {
  const world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  const first = await world.orchestrator(point && { point, count: 4 });
  const handle = await world.start("listens", { sum: 0, next: 0, outOfOrder: 0 }, "ear");
  const sent = world.run(
    (async () => {
      // A sender that does not wait for each: the server takes them in the order they were sent.
      const all: Promise<void>[] = [];
      for (let n = 0; n < count; n++) all.push(handle.signal("n", n));
      await Promise.all(all);
    })(),
    600_000,
  );
  await sent;
  if (point) {
    first.kill();
    const second = await world.orchestrator({ point, count: 2 });
    await world.clock.advance(10_000);
    second.kill();
    await world.orchestrator();
  }
  expect(await world.run(handle.result(), 600_000)).toEqual({
    sum: (count * (count - 1)) / 2,
    outOfOrder: 0,
  });
  checkHistory((await world.history("ear")) ?? []);
});

test("T7: a signal whose delivery was lost is not overtaken by the next", async () => {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  const handle = await world.start("pair", null, "ear");
  await world.clock.advance(100);
  const { fate } = world.broker;
  fate.faults = { ...noFaults, deliveryLost: 1 };
  await world.signal("ear", "n", "first");
  await world.clock.advance(10);
  fate.faults = noFaults;
  await world.signal("ear", "n", "second");
  expect(await world.run(handle.result(), 5_000)).toEqual(["first", "second"]);
});
