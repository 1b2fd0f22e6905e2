/** The first summary of an instance may wait while its anchor stands: seen soon, written once, never lost. */
import { expect, test } from "vitest";
import { z } from "zod";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { bucketStream } from "../../../shared/bus/index.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let world: World;

const quick = defineActivity("quick", { run: () => "done" });
const long = defineActivity("long", {
  input: z.int(),
  run: (_ctx, ms) => new Promise<void>((resolve) => void world.clock.after(ms, resolve)),
});
const short = defineOrchestration("short", {
  run: async (ctx) => {
    for (let i = 0; i < 3; i++) await ctx.run(quick, null);
  },
});
const patient = defineOrchestration("patient", { input: z.int(), run: (ctx, ms) => ctx.run(long, ms) });
const waits = defineOrchestration("waits", { run: (ctx) => ctx.waitForSignal("go") });
const thenWaits = defineOrchestration("then-waits", {
  run: async (ctx) => {
    await ctx.run(quick, null);
    await ctx.waitForSignal("go");
  },
});
const app = collectApp({ quick, long, short, patient, waits, thenWaits });

async function open(alwaysReplay = false): Promise<void> {
  world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, alwaysReplay });
  await world.prepare();
}

/** How often anybody's summary was written. */
const written = (): number => world.everStored(bucketStream(world.names.bucket("instances")));

/** From the read model alone, as lists and dashboards have it. */
const listed = async (): Promise<string[]> => {
  const all = await world.run(world.client.list());
  return all.map(({ instanceId, status }) => `${instanceId} ${status}`);
};

async function untilListed(entry: string, withinMs: number): Promise<void> {
  for (let passed = 0; !(await listed()).includes(entry); passed += 10) {
    expect(passed, `${entry}; there is: ${await listed()}`).toBeLessThan(withinMs);
    await world.clock.advance(10);
  }
}

test("an instance that is soon over is written once, with its end", async () => {
  await open();
  await world.orchestrator();
  await world.worker();
  await world.run((await world.start("short", null, "a")).result());
  expect(written()).toBe(1);
  expect(await listed()).toEqual(["a completed"]);
});

test.each([false, true])("one that takes longer is seen soon; always replaying %s", async (alwaysReplay) => {
  await open(alwaysReplay);
  await world.orchestrator();
  await world.worker();
  const handle = await world.start("patient", 60_000, "a");
  expect(await listed()).toEqual([]);
  // A request by its id is answered all the while: its start is in the inbox.
  expect(await world.run(world.client.status("a"))).toMatchObject({ name: "patient", status: "pending" });
  await untilListed("a running", 400);
  expect(written()).toBe(1);
  await world.run(handle.result(), 120_000);
  expect(written()).toBe(2);
});

test("one that ends in the moment when it would be seen is not loaded from its history for that", async () => {
  await open();
  await world.orchestrator();
  await world.worker();
  for (let ms = 235; ms < 265; ms++) {
    const handle = await world.start("patient", ms, `a-${ms}`);
    await world.run(handle.result());
    await world.clock.advance(50);
    expect(await listed()).toContain(`a-${ms} completed`);
  }
  expect(world.happenings.filter(({ kind }) => kind === "instance.loaded")).toEqual([]);
});

test("one without work on the lane is seen at once", async () => {
  await open();
  await world.orchestrator();
  await world.start("waits", null, "a");
  await untilListed("a running", 50);
});

test("one that has nothing out any more is seen before its start is acknowledged", async () => {
  await open();
  await world.orchestrator();
  await world.worker();
  await world.start("then-waits", null, "a");
  const { inboxStream } = world.names;
  for (
    let passed = 0;
    ((await world.run(world.outside.streamInfo(inboxStream)))?.messages ?? 0) > 0;
    passed++
  ) {
    expect(passed).toBeLessThan(200);
    await world.clock.advance(1);
  }
  expect(await listed()).toEqual(["a running"]);
});

const deaths: { point: FaultPoint; count: number }[] = [
  { point: "turn.after_append", count: 1 },
  { point: "effects.half_published", count: 1 },
  { point: "turn.after_effects", count: 1 },
  { point: "turn.after_append", count: 2 },
  { point: "turn.after_effects", count: 2 },
];

test.each(deaths)("a successor tells of it when its owner died at $point, time $count", async (dieAt) => {
  await open();
  await world.orchestrator(dieAt);
  await world.worker();
  await world.start("then-waits", null, "a");
  await world.clock.advance(100);
  expect(await listed(), "its owner did not come to it").toEqual([]);
  await world.orchestrator();
  await untilListed("a running", 30_000);
  await world.clock.advance(10_000);
  const inbox = await world.run(world.outside.streamInfo(world.names.inboxStream));
  expect(inbox?.messages, "nothing is left unacknowledged").toBe(0);
});

test("one that was signalled before its start is known by its name, and can be cancelled, all the while", async () => {
  await open();
  await world.worker();
  // More turns than there are slots: signal and start wait together in the mailbox.
  for (let n = 0; n < 600; n++) await world.start("waits", null, `other-${n}`);
  await world.signal("a", "early", 1);
  await world.start("patient", 60_000, "a");
  await world.orchestrator();
  const committed = () =>
    world.happenings.some(
      (happening) => happening.kind === "instance.started" && happening.instanceId === "a",
    );
  while (!committed()) await world.clock.advance(5);
  await world.clock.advance(20);
  expect((await world.history("a"))?.length, "both in one turn").toBe(1);
  expect(await world.run(world.client.status("a"))).toMatchObject({ name: "patient" });
  await world.run(world.client.cancel("a"));
});
