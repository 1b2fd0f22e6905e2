/** Whole engine: a saga undone through deaths, a query of an archived instance, and the warning of a long history. */
import { expect, test } from "vitest";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { HistoryStore } from "../../../shared/history/index.ts";
import { softLimitEvents } from "../../../shared/replay/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { historyShards } from "../../../shared/testing/world/members.ts";
import { World } from "../../../shared/testing/world/world.ts";

let undone: string[] = [];
const book = defineActivity("book", { run: (_ctx, what: string) => `${what}-booked` });
const undo = defineActivity("undo", { run: (_ctx, what: string) => void undone.push(what) });
const app = collectApp({
  ...{ book, undo },
  trip: defineOrchestration("trip", {
    run: (ctx) =>
      ctx.saga(async (saga) => {
        for (const what of ["flight", "hotel", "car"])
          await saga.step(
            (inner) => inner.run(book, what),
            (inner, booked) => inner.run(undo, booked),
          );
        throw new Error("no money");
      }),
  }),
  counted: defineOrchestration("counted", {
    run: async (ctx) => {
      let count = 0;
      ctx.onQuery("count", () => count);
      for await (const n of ctx.signals<number>("add")) {
        if (n === 0) return count;
        for (let i = 0; i < n; i++) count += ctx.sideEffect(() => 1);
      }
    },
  }),
});
const open = async (options: { alwaysReplay?: boolean } = {}) => {
  undone = [];
  const faults = { ...noFaults, latencyMs: [1, 1] } as const;
  const world = new World({ seed: 1, app, faults, layout: "per-instance", ownAfterMs: 0, ...options });
  await world.prepare();
  return world;
};

const points: FaultPoint[] = [
  "turn.before_append",
  "turn.after_append",
  "effects.half_published",
  "turn.after_effects",
];
// A trip has seven turns: three bookings, three undone, and the start.
const deaths = points.flatMap((point) => [3, 4, 5, 6].map((count) => ({ point, count })));

test.each(deaths)("a saga is undone in reverse though its owner dies at $point, $count", async (death) => {
  const world = await open();
  const first = await world.orchestrator(death);
  await world.worker();
  const handle = await world.start("trip", null, "a");
  await world.clock.advance(2000);
  first.kill();
  await world.orchestrator();
  await expect(world.run(handle.result(), 120_000)).rejects.toMatchObject({ message: "no money" });
  // A step may run twice when its owner dies, in its place.
  expect([...new Set(undone)]).toEqual(["car-booked", "hotel-booked", "flight-booked"]);
  expect(undone).toEqual([...undone].sort((a, b) => undone.indexOf(a) - undone.indexOf(b)));
  checkHistory((await world.history("a")) ?? []);
});

test("an archived instance still answers queries", async () => {
  const world = await open();
  const first = await world.orchestrator();
  const handle = await world.start("counted", null, "old");
  await world.signal("old", "add", 5);
  await world.signal("old", "add", 0);
  expect(await world.run(handle.result())).toBe(5);
  const { outside: bus, names, runtime } = world;
  const store = new HistoryStore({
    ...{
      bus,
      names,
      runtime,
      layout: "per-instance",
      maxOwnStreams: 100,
      shards: historyShards,
      replicas: 1,
    },
  });
  await world.run(store.archive("old"));
  expect(world.happenings).toContainEqual({ kind: "history.archived", instanceId: "old" });
  expect(await world.run(world.client.query("old", "count"))).toBe(5);
  first.kill();
  await world.orchestrator();
  expect(await world.run(world.client.query("old", "count", undefined, { timeout: "60s" }), 60_000)).toBe(5);
  await expect(world.run(world.client.query("old", "sum"))).rejects.toMatchObject({
    code: "unknown_query",
    details: { names: ["count"] },
  });
});

test("a history past the soft limit is announced once, also when its owner changes", async () => {
  const world = await open();
  const long = () => world.happenings.filter(({ kind }) => kind === "history.long");
  const first = await world.orchestrator();
  await world.start("counted", null, "long");
  let added = 0;
  const add = async () => {
    await world.run(world.client.signal("long", "add", softLimitEvents / 4));
    added += softLimitEvents / 4;
    const count = () => world.client.query("long", "count", undefined, { timeout: "60s" });
    while ((await world.run(count(), 60_000)) !== added) await world.clock.advance(10);
  };
  for (let i = 0; i < 3; i++) await add();
  expect(long()).toEqual([]);
  await add();
  expect(long()).toMatchObject([{ instanceId: "long", limit: softLimitEvents }]);
  first.kill();
  await world.orchestrator();
  await add();
  expect(long()).toHaveLength(1);
});
