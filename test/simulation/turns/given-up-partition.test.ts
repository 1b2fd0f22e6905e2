/**
 * An owner that gives its partition up in the middle of a turn leaves effects to the next owner; what it does afterwards
 * must not hide from that one what is missing (T3).
 */
import { expect, test } from "vitest";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const kid = defineOrchestration("kid", { run: async () => "done" });
const parent = defineOrchestration("parent", {
  run: async (ctx) => {
    await ctx.waitForSignal("begin");
    const child = ctx.child(kid, null);
    await ctx.waitForSignal("go");
    return child;
  },
});

test("nothing is committed after the partition was given up, on top of a commit whose effects are unpublished", async () => {
  const app = collectApp({ kid, parent });
  const world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, partitions: 1 });
  await world.prepare();
  // Dies with the start of the child in its history and nowhere else.
  await world.orchestrator({ point: "turn.after_append", count: 2 });
  const handle = await world.start("parent", null, "a");
  await world.clock.advance(1_000);
  for (const name of ["begin", "go"]) {
    await world.signal("a", name, null);
    await world.clock.advance(1_000);
  }
  const { broker, names } = world;
  const history = names.ownHistoryStream("a");
  for (const stream of [names.inboxStream, history]) broker.silent.add(stream);
  const givesUp = await world.orchestrator();
  // Its first try fails, so that both signals are part of one turn at the next.
  for (let i = 0; i < 100 && world.count("fault") === 0; i++) await world.clock.advance(100);
  broker.silent.delete(history);
  for (let i = 0; i < 100 && world.count("commit.owed") === 0; i++) await world.clock.advance(100);
  expect(world.count("commit.owed"), "the second owner has tried to start the child").toBe(1);
  await world.run(givesUp.stop());
  broker.silent.delete(names.inboxStream);
  await world.orchestrator();
  expect(await world.run(handle.result(), 60_000)).toBe("done");
});
