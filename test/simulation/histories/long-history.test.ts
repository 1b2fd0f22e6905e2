/** F36: an instance with a history of 50 000 events is loaded, goes on and ends; the checker reads it page by page. */
import { expect, test } from "vitest";
import { Commit } from "../../../schemas/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { HistoryStore } from "../../../shared/history/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { historyShards } from "../../../shared/testing/world/members.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { violationLines } from "../../../shared/verify/index.ts";

const app = collectApp({
  waits: defineOrchestration("waits", { run: async (ctx) => ctx.waitForSignal<string>("go") }),
});

test("50 000 events", async () => {
  const world = new World({ seed: 1, app, faults: noFaults, layout: "shared" });
  await world.prepare();
  const { outside: bus, names, runtime } = world;
  const store = new HistoryStore({
    ...{ bus, names, runtime, layout: "shared", maxOwnStreams: 0, shards: historyShards, replicas: 1 },
  });
  let position = await world.run(store.place("long"));
  const perCommit = 500;
  for (let n = 0; n < 100; n++) {
    const events = Array.from({ length: perCommit }, (_, i) => ({
      id: n * perCommit + i + 1,
      ...(n === 0 && i === 0
        ? { kind: "instance.started", name: "waits", input: { json: null }, rules: 1 }
        : { kind: "signal.received", name: "other", payload: { json: i } }),
    }));
    const commit = { v: 1, commitId: `c${n}`, instanceId: "long", execution: 1, at: world.clock.now() };
    const appended = await world.run(
      store.append(position, Commit.parse({ ...commit, inbox: [n + 1], events }), {
        startsExecution: n === 0,
      }),
    );
    if (appended.kind !== "appended") throw new Error(appended.kind);
    ({ position } = appended);
  }
  await world.orchestrator();
  await world.signal("long", "go", "home");
  expect(await world.run(world.client.result("long", { timeout: "1m" }))).toBe("home");
  await world.clock.advance(5_000);
  const report = await world.verify();
  expect(violationLines(report)).toEqual([]);
  expect(report.read).toMatchObject({ instances: 1, events: 50_002 });
});
