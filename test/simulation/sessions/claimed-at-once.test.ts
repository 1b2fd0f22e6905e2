/** How often a holder writes into the inbox of its instance until the session is there. */
import { expect, test } from "vitest";
import { z } from "zod";
import { SessionReport } from "../../../schemas/index.ts";
import { decode } from "../../../shared/bus/index.ts";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { tapWorld } from "../../support/nats/tapped-bus.ts";

let world: World;

const state = defineSession("state", {
  config: z.object({ initMs: z.int() }),
  init: async (_ctx, { initMs }) => {
    if (initMs > 0) await new Promise<void>((resolve) => world.clock.after(initMs, resolve));
    return {};
  },
  calls: { touch: call({ run: () => "touched" }) },
});
const opens = defineOrchestration("opens", {
  input: z.int(),
  run: async (ctx, initMs) => {
    await using session = await ctx.openSession(state, { config: { initMs } });
    return await session.touch();
  },
});

const passes = defineOrchestration("passes", {
  run: async (ctx) => {
    const session = await ctx.openSession(state, { config: { initMs: 0 } });
    await session.close();
  },
});

test("closed in the turn in which it came: the register knows who held it all the same", async () => {
  world = new World({ seed: 4, app: collectApp({ state, passes }), faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  const worker = await world.worker();
  const handle = await world.start("passes", null, "a");
  await world.run(handle.result());
  await world.clock.advance(100);
  const { record } = await world.run(world.client.sessions.describe("a-s1"));
  expect(record).toMatchObject({ phase: "closed", owners: [{ workerId: worker.id }] });
});

test.each([
  { initMs: 0, told: [] }, // the answer to the offer says it
  { initMs: 7, told: ["activated"] },
  { initMs: 200, told: ["claimed", "activated"] },
])("an init of $initMs ms: $told; the history has claimed and activated", async ({ initMs, told }) => {
  world = new World({ seed: 3, app: collectApp({ state, opens }), faults: noFaults });
  const heard: string[] = [];
  tapWorld(world, (said) => {
    if (said.subject === world.names.verb("a", "session")) {
      const report = decode(SessionReport, said.body);
      if (report.kind === "ok") heard.push(report.value.report.kind);
    }
    return said;
  });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  await world.worker();
  const handle = await world.start("opens", initMs, "a");
  expect(await world.run(handle.result())).toBe("touched");
  expect(heard).toEqual(told);
  const commits = (await world.history("a")) ?? [];
  const kinds = commits.flatMap(({ events }) => events.map(({ kind }) => kind));
  expect(kinds.filter((kind) => kind === "session.claimed" || kind === "session.activated")).toEqual([
    "session.claimed",
    "session.activated",
  ]);
});
