/** Ids that are signalled and never started. */
import { expect, test } from "vitest";
import { collectApp, defineOrchestration } from "../../shared/definitions/index.ts";
import { checkHistory } from "../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../shared/testing/memory/index.ts";
import { World } from "../../shared/testing/world/world.ts";

const app = collectApp({
  hears: defineOrchestration("hears", {
    run: async (ctx) => [await ctx.waitForSignal("a"), await ctx.waitForSignal("a")],
  }),
});

test.each(["per-instance", "shared"] as const)(
  "defect 8: what is only signalled has no stream of its own, and starts all the same, layout %s",
  async (layout) => {
    const world = new World({ seed: 1, app, faults: noFaults, layout });
    await world.prepare();
    const first = await world.orchestrator();
    const streams = () => world.run(world.outside.streamCount());
    const before = await streams();
    for (let i = 0; i < 20; i++) await world.signal(`id-${i}`, "a", 1);
    await world.clock.advance(5_000);
    expect(await streams()).toBe(before);
    // Known where it lies, also to a successor.
    first.kill();
    await world.orchestrator();
    const handle = await world.start("hears", null, "id-7");
    await world.signal("id-7", "a", 2);
    expect(await world.run(handle.result())).toEqual([1, 2]);
    checkHistory((await world.history("id-7")) ?? []);
    await world.start("hears", null, "fresh");
    await world.clock.advance(1_000);
    expect(await streams(), "what is started has one").toBe(before + (layout === "shared" ? 0 : 1));
  },
);
