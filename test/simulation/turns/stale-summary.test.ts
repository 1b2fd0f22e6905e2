/** An owner that is cut off between its commit and the summary writes it when its successor has written a newer one (E2). */
import { expect, test } from "vitest";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { type Member, World } from "../../../shared/testing/world/world.ts";

const app = collectApp({
  twice: defineOrchestration("twice", {
    run: async (ctx) => {
      await ctx.waitForSignal("first");
      ctx.setStatus("half way");
      await ctx.waitForSignal("second");
    },
  }),
});

test("E2: a summary that comes late does not go over a newer one", async () => {
  const members: Member[] = [];
  let stale: Member | undefined;
  const world = new World({
    ...{ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, partitions: 1 },
    onPoint: (point, id) => {
      if (stale || point !== "turn.after_append") return;
      stale = members.find((member) => member.id === id);
      stale?.bus.hold("outgoing");
    },
  });
  await world.prepare();
  const before = await world.orchestrator();
  await world.start("twice", null, "a");
  await world.clock.advance(100);
  before.kill();
  // Neither knows a summary of the instance yet.
  for (let i = 0; i < 2; i++) members.push(await world.orchestrator());
  await world.clock.advance(5_000);
  await world.signal("a", "first", null);
  await world.clock.runUntil(() => stale !== undefined);
  // The second owner has the partition before the first gives up asking for the summary.
  await world.clock.runUntil(() => world.count("instance.loaded") === 2);
  await world.signal("a", "second", null);
  await world.clock.runUntil(() => world.count("instance.closed") === 1);
  await world.clock.advance(50);
  stale?.bus.letThrough("outgoing");
  await world.clock.advance(1_000);
  const [listed] = await world.run(world.client.list());
  expect(listed).toMatchObject({ instanceId: "a", status: "completed" });
});
