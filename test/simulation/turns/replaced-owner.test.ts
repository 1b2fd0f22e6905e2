/**
 * An orchestrator that was cut off for longer than the grace loses its partitions (D1) and learns of it only with its next
 * renewal. Until then both take messages of the same instances.
 */
import { expect, test } from "vitest";
import { z } from "zod";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const step = defineActivity("step", { run: async () => null });
// What has a heartbeat to keep goes by the queue, and its report by the inbox.
const steps = defineOrchestration("steps", {
  input: z.int(),
  run: async (ctx, n) => {
    await ctx.waitForSignal("begin");
    for (let nth = 0; nth < n; nth++)
      await Promise.all([1, 2, 3].map(() => ctx.run(step, null, { heartbeatTimeout: "1h" })));
    return n;
  },
});

test.each([1, 2, 3, 4, 6])(
  "TURN-4: a report that only the new owner knows what to do with is not lost by the old one (seed %i)",
  async (seed) => {
    const faults = { ...noFaults, latencyMs: [1, 3] as [number, number] };
    const world = new World({
      seed,
      app: collectApp({ step, steps }),
      faults,
      partitions: 1,
      ackWait: "10m",
    });
    await world.prepare();
    const first = await world.orchestrator();
    await world.worker();
    const handle = await world.start("steps", 12, "a");
    await world.clock.advance(500);
    const second = await world.orchestrator();
    await world.clock.advance(500);
    first.bus.disconnect();
    while (world.count("orchestrator.died") === 0) await world.clock.advance(10);
    first.bus.reconnect();
    await world.signal("a", "begin", null);
    expect(await world.run(handle.result(), 120_000)).toBe(12);
    expect(world.count("turn.fenced"), "both have taken turns").toBeGreaterThan(0);
    checkHistory((await world.history("a")) ?? []);
    await world.run(Promise.all([first.stop(), second.stop()]));
  },
);
