/** A report that comes by the lane when its instance keeps no message that stands for it (LANE-1, T3). */
import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

test("LANE-1: a report by the lane without an anchor goes by the inbox, and its commit is followed up", async () => {
  let world: World;
  const long = defineActivity("long", { run: () => sleep(world.clock, 20_000).then(() => "long") });
  const quick = defineActivity("quick", { run: () => "quick" });
  const two = defineOrchestration("two", {
    run: async (ctx) => [await ctx.run(long, null), await ctx.run(quick, null)],
  });
  world = new World({
    seed: 1,
    app: collectApp({ long, quick, two }),
    faults: { ...noFaults, latencyMs: [1, 1] },
  });
  await world.prepare();
  // Dies behind the commit of the report, before it has published the second task.
  await world.orchestrator({ point: "turn.after_append", count: 2 });
  const worker = await world.worker();
  const handle = await world.start("two", null, "a");
  await world.clock.advance(200);
  worker.bus.hold("outgoing");
  await world.clock.runUntil(() => world.count("lane.recalled") === 1);
  await world.clock.advance(200); // the task is in the queue, and the anchor was let go
  worker.bus.letThrough("outgoing");
  await world.clock.advance(25_000);
  await world.orchestrator();
  expect(await world.run(handle.result(), 120_000)).toEqual(["long", "quick"]);
});
