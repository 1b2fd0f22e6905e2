/** Entries of sessions that are over and were removed: they stay so, and their ids can be used anew (E2). */
import { expect, test } from "vitest";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { type Member, World } from "../../../shared/testing/world/world.ts";

const counter = defineSession("counter", {
  init: () => ({ n: 0 }),
  calls: { add: call({ run: (state: { n: number }) => ++state.n }) },
});
const counts = defineOrchestration("counts", {
  async run(ctx) {
    await using session = await ctx.openSession(counter, { id: "s" });
    return await session.add(undefined);
  },
});

const twice = defineOrchestration("twice", {
  async run(ctx) {
    for (const wait of ["3m", undefined] as const) {
      await using session = await ctx.openSession(counter, { id: "s" });
      await session.add(undefined);
      if (wait === undefined) await ctx.waitForSignal("go");
      await session.close();
      if (wait !== undefined) await ctx.sleep(wait);
    }
  },
});

test("an owner that was asleep does not bring back the entry of a session that is over", async () => {
  let sleeper: Member | undefined;
  let asleep = false;
  const world = new World({
    ...{ seed: 1, app: collectApp({ counter, counts }), faults: noFaults, partitions: 1 },
    watcherSettings: { archiveAfterMs: 1_000 },
    onPoint: (point, id) => {
      if (point !== "turn.after_append" || id !== sleeper?.id || asleep) return;
      asleep = true;
      sleeper.pause("let through");
    },
  });
  await world.prepare();
  sleeper = await world.orchestrator();
  await world.worker();
  await world.watcher();
  const handle = await world.start("counts", null, "a");
  for (let i = 0; i < 100 && !asleep; i++) await world.clock.advance(10);
  await world.orchestrator();
  expect(await world.run(handle.result(), 60_000)).toBe(1);
  const known = () =>
    world.run(
      world.client.sessions.describe("s").then(
        () => true,
        () => false,
      ),
    );
  for (let i = 0; i < 100 && (await known()); i++) await world.clock.advance(1_000);
  expect(await known(), "the watcher has removed the entry").toBe(false);
  sleeper.resume();
  await world.clock.advance(1_000);
  expect(await known(), "and it stays removed").toBe(false);
  expect((await world.verify()).violations).toEqual([]);
  // The id is free for others.
  const next = await world.start("counts", null, "b");
  expect(await world.run(next.result(), 60_000)).toBe(1);
});

test("a session that is opened again under its id is registered again, by the owner that remembers the first", async () => {
  const app = collectApp({ counter, twice });
  const world = new World({ seed: 1, app, faults: noFaults, watcherSettings: { archiveAfterMs: 1_000 } });
  await world.prepare();
  await world.orchestrator();
  const worker = await world.worker();
  await world.watcher();
  const handle = await world.start("twice", null, "a");
  const entry = () =>
    world.run(
      world.client.sessions.describe("s").then(
        ({ record }) => record,
        () => undefined,
      ),
    );
  const until = async (what: string, holds: () => Promise<boolean>) => {
    for (let i = 0; i < 300 && !(await holds()); i++) await world.clock.advance(1_000);
    expect(await holds(), what).toBe(true);
  };
  await until("closed", async () => (await entry())?.phase === "closed");
  await until("removed", async () => (await entry()) === undefined);
  await world.run(worker.stop());
  await until("asked for again", async () => (await entry())?.phase === "opening");
  await world.worker();
  await until("open again", async () => (await entry())?.phase === "active");
  await world.signal("a", "go", null);
  await world.run(handle.result(), 60_000);
  expect((await world.verify()).violations).toEqual([]);
});
