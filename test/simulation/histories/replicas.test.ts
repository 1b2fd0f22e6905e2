/**
 * Streams with several replicas, some of which lag: commits that were acknowledged count, also if the replica
 * an owner read did not have them yet.
 */
import { expect, test } from "vitest";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { type BusFaults, noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { violationLines } from "../../../shared/verify/index.ts";

let world: World;
const brief = defineActivity("brief", {
  run: () => new Promise<void>((resolve) => void world.clock.after(20, resolve)),
});
const steps = defineOrchestration("steps", {
  run: async (ctx) => {
    for (let n = 0; n < 20; n++) await ctx.run(brief, null);
    return "end";
  },
});
const app = collectApp({ brief, steps });
const ids = Array.from({ length: 10 }, (_, n) => `i${n}`);

/** Longer than a step: a copy shows what was open before it. */
const lagging: BusFaults = { ...noFaults, latencyMs: [1, 1], replicaLagMs: [30, 60] };

const cases = [
  ["shared", true],
  ["shared", false],
  ["per-instance", true],
  ["per-instance", false],
] as const;

test.each(cases)("no completion is lost, layout %s, always replaying %s", async (layout, alwaysReplay) => {
  world = new World({ seed: 1, app, faults: lagging, layout, alwaysReplay, replicas: 3 });
  await completesAll();
});

test.each(cases)(
  "defect 12: nor where services were told of fewer copies than there are, layout %s, always replaying %s",
  async (layout, alwaysReplay) => {
    const told = { replicas: 3, configuredReplicas: 1 };
    world = new World({ seed: 1, app, faults: lagging, layout, alwaysReplay, ...told });
    await completesAll();
  },
);

test("defect 12: the history of a new instance has as many copies as the shared ones", async () => {
  world = new World({ seed: 1, app, faults: lagging, replicas: 3, configuredReplicas: 1, ownAfterMs: 0 });
  await world.prepare();
  await world.orchestrator();
  await world.start("steps", null, "a");
  await world.clock.advance(1_000);
  const own = await world.run(world.outside.streamInfo(world.names.ownHistoryStream("a")));
  expect(own?.replicas).toBe(3);
});

async function completesAll(): Promise<void> {
  await world.prepare();
  let orchestrator = await world.orchestrator();
  await world.worker();
  const handles = await Promise.all(ids.map((id) => world.start("steps", null, id)));
  for (let n = 0; n < 3; n++) {
    await world.clock.advance(40);
    const next = await world.orchestrator();
    await world.run(orchestrator.stop());
    orchestrator = next;
  }
  const results = Promise.all(handles.map((handle) => handle.result()));
  expect(await world.run(results, 60_000)).toEqual(ids.map(() => "end"));
  expect(world.count("instance.loaded"), "histories were read").toBeGreaterThan(0);
}

const big = "x".repeat(300_000);
const bulky = defineActivity("bulky", { run: () => big });
const carries = defineOrchestration("carries", {
  run: async (ctx) => {
    let length = 0;
    for (let n = 0; n < 5; n++) length += (await ctx.run(bulky, null)).length;
    return length;
  },
});

test("a value too big for a message is found, wherever it is looked for", async () => {
  const withBlobs = collectApp({ bulky, carries });
  world = new World({ seed: 1, app: withBlobs, faults: lagging, replicas: 3 });
  await world.prepare();
  await world.orchestrator();
  await world.worker();
  const handle = await world.start("carries", null, "carries");
  expect(await world.run(handle.result(), 5_000)).toBe(5 * big.length);
  expect(world.count("instance.parked")).toBe(0);
});

const held = defineSession("held", {
  init: () => ({}),
  calls: { wait: call({ run: () => new Promise<never>(() => undefined) }) },
});
const loses = defineOrchestration("loses", {
  run: async (ctx) => {
    const session = await ctx.openSession(held, { onLost: "fail", leaseTtl: "2s" });
    return session.wait(null).catch((error: { code?: string }) => error.code);
  },
});

async function activated(id: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const events = (await world.history(id))?.flatMap((commit) => commit.events) ?? [];
    if (events.some(({ kind }) => kind === "session.activated")) return;
    await world.clock.advance(50);
  }
  throw new Error(`the session of ${id} was never held`);
}

test("I8: the loss of a holder is recorded within a second of its lease's expiry, also where copies lag", async () => {
  const faults: BusFaults = { ...lagging, latencyMs: [0, 10], markerDelayMs: [0, 300] };
  world = new World({ seed: 3, app: collectApp({ held, loses }), faults, replicas: 3 });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  for (let n = 0; n < 10; n++) {
    const worker = await world.worker();
    const handle = await world.start("loses", null, `l${n}`);
    await activated(`l${n}`);
    await world.clock.advance(n * 100);
    worker.kill();
    expect(await world.run(handle.result(), 30_000)).toBe("session_lost");
  }
  await world.clock.advance(1_000);
  const report = await world.verify({ lossMs: 1_000 });
  expect(violationLines(report)).toEqual([]);
  expect(report.spreads["loss recorded after the lease's expiry"]?.count).toBe(10);
});
