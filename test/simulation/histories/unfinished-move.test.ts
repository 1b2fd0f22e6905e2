/**
 * The store is full when a history gets a stream of its own (HISTORY-5): the stream is there and stays empty.
 * The history is moved into it when the store takes messages again, or the watcher removes it after the
 * instance's end (I15).
 */
import { expect, test } from "vitest";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { violationLines } from "../../../shared/verify/index.ts";

const app = collectApp({
  waits: defineOrchestration("waits", {
    run: async (ctx) => {
      for await (const word of ctx.signals<string>("word")) if (word === "end") return;
    },
  }),
});

/** An instance whose stream was made, and that got no copy of its history. */
async function halfMoved() {
  const world = new World({
    ...{ seed: 1, app, faults: noFaults, layout: "per-instance", keepEnded: true },
    watcherSettings: { sweepEveryMs: 5_000, archiveAfterMs: 60_000 },
  });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  const handle = await world.start("waits", null, "a");
  await world.clock.advance(500);
  world.broker.storageFull = true;
  // Shorter than the lease of a partition: the same owner goes on, with what it knows.
  await world.clock.advance(1_500);
  world.broker.storageFull = false;
  await world.clock.advance(1_000);
  const stream = world.names.ownHistoryStream("a");
  const sizeOf = () => world.broker.streams.get(stream)?.size;
  expect(sizeOf()).toBe(0);
  const say = (word: string) => world.run(handle.signal("word", word));
  const ended = () => world.run(handle.result());
  return { world, sizeOf, say, ended };
}

test("a history whose move failed is moved after a later turn", async () => {
  const { world, sizeOf, say } = await halfMoved();
  await world.clock.advance(60_000);
  await say("go on");
  await world.clock.advance(5_000);
  expect(sizeOf()).toBeGreaterThan(0);
  expect(violationLines(await world.verify())).toEqual([]);
});

test("a stream that stayed empty is no leftover while its instance runs, and is removed after the end", async () => {
  const { world, sizeOf, say, ended } = await halfMoved();
  expect(violationLines(await world.verify())).toEqual([]);
  expect(sizeOf()).toBe(0);
  await say("end");
  await ended();
  expect(violationLines(await world.verify({ quiet: true }))).toEqual([]);
  expect(sizeOf()).toBeUndefined();
});
