/** Ids that are signalled and never started. */
import { expect, test } from "vitest";
import { defaultWatcherConfig } from "../../../services/watcher/config.ts";
import { newCounters } from "../../../services/watcher/counters.ts";
import { openRegisters, type WatcherDeps } from "../../../services/watcher/deps.ts";
import { Grace } from "../../../services/watcher/grace.ts";
import { RemoveInstances } from "../../../services/watcher/retention/remove-instances.ts";
import type { Bus } from "../../../shared/bus/bus.ts";
import { Bucket } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { historiesAt } from "../../../shared/testing/world/members.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { pausedBefore } from "../../support/nats/paused-bus.ts";

const app = collectApp({
  hears: defineOrchestration("hears", {
    run: async (ctx) => [await ctx.waitForSignal("a"), await ctx.waitForSignal("a")],
  }),
});

test.each(["per-instance", "shared"] as const)(
  "defect 8: what is only signalled has no stream of its own, and starts all the same, layout %s",
  async (layout) => {
    const world = new World({ seed: 1, app, faults: noFaults, layout });
    await world.prepare();
    const first = await world.orchestrator();
    const streams = () => world.run(world.outside.streamCount());
    const before = await streams();
    for (let i = 0; i < 20; i++) await world.signal(`id-${i}`, "a", 1);
    await world.clock.advance(5_000);
    expect(await streams()).toBe(before);
    // Known where it lies, also to a successor.
    first.kill();
    await world.orchestrator();
    const handle = await world.start("hears", null, "id-7");
    await world.signal("id-7", "a", 2);
    expect(await world.run(handle.result())).toEqual([1, 2]);
    checkHistory((await world.history("id-7")) ?? []);
    await world.start("hears", null, "fresh");
    await world.clock.advance(1_000);
    expect(await streams(), "what is started has one").toBe(before + (layout === "shared" ? 0 : 1));
  },
);

const large = "x".repeat(400_000);

/** The sweep's step, an hour after the last signal. */
function forgetting(world: World, bus: Bus): RemoveInstances {
  const { runtime, names } = world;
  const deps: WatcherDeps = {
    ...{ bus, names, runtime, counters: newCounters(), grace: new Grace(runtime, 1) },
    registers: openRegisters(bus, names, runtime),
    config: { ...defaultWatcherConfig, retainForMs: 60_000 },
    generation: { allows: () => true },
    acting: () => true,
  };
  return new RemoveInstances(deps, historiesAt({ bus, names, runtime }, 1));
}

async function signalled(): Promise<World> {
  const world = new World({ seed: 1, app, faults: noFaults, alwaysReplay: true, keepEnded: true });
  await world.prepare();
  await world.orchestrator();
  await world.run(world.client.signal("lone", "a", large));
  await world.signal("lone", "a", 1);
  await world.clock.advance(120_000);
  return world;
}

/** Not only a result: its history is there, from its start to its end. */
async function checkWhole(world: World): Promise<void> {
  const history = (await world.history("lone")) ?? [];
  checkHistory(history);
  const kinds = history.flatMap(({ events }) => events.map(({ kind }) => kind));
  expect(kinds).toContain("instance.started");
  expect(kinds.at(-1)).toBe("instance.completed");
}

test("defect 8: an id that was never started is forgotten with its signals, and shown no more", async () => {
  const world = await signalled();
  const shown = () => world.run(new Bucket(world.outside, world.names.bucket("instances")).get("lone"));
  expect(await shown()).toBeDefined();
  expect(await world.run(forgetting(world, world.outside).run(10))).toBe(1);
  expect(await shown()).toBeUndefined();
  expect(await world.history("lone")).toBeUndefined();
  expect(await world.run(world.outside.blobs.list("lone/"))).toEqual([]);
  // Its owner still has it in memory: a start begins with nothing.
  const handle = await world.start("hears", null, "lone");
  await world.signal("lone", "a", 2);
  await world.signal("lone", "a", 3);
  expect(await world.run(handle.result())).toEqual([2, 3]);
  expect(await world.run(forgetting(world, world.outside).run(10)), "what runs stays").toBe(0);
});

test("defect 8: what a start under limits waits with is not forgotten while it waits", async () => {
  const job = defineOrchestration("job", {
    run: async (ctx, { ms, text }: { ms: number; text: string }) => {
      await ctx.sleep(ms);
      return [text.length, ms === 0 ? await ctx.waitForSignal("a") : null];
    },
  });
  const world = new World({ seed: 1, app: collectApp({ job }), faults: noFaults, keepEnded: true });
  await world.prepare();
  await world.orchestrator();
  const start = (id: string, input: { ms: number; text: string }) =>
    world.run(world.client.start("job", input, { id, flow: { key: "k", concurrency: 1 } }));
  await start("long", { ms: 240_000, text: "" });
  await start("lone", { ms: 0, text: large });
  await world.signal("lone", "a", 1);
  await world.clock.advance(120_000);
  expect(await world.run(forgetting(world, world.outside).run(10))).toBe(0);
  await world.run(world.client.result("long"), 300_000);
  expect(await world.run(world.client.result("lone"), 60_000)).toEqual([large.length, 1]);
});

test.each([
  ["on its way", 0],
  ["recorded", 100],
])(
  "defect 8: a start, %s while its signals are being forgotten, finds all of them or none",
  async (_, ms) => {
    let forgot = 0;
    for (let nth = 1; ; nth++) {
      const world = await signalled();
      const starts = async () => {
        await world.client.start("hears", null, { id: "lone" });
        await sleep(world.clock, ms);
      };
      const watch = pausedBefore(world.outside, nth, starts);
      await world.run(forgetting(world, watch.bus).run(10));
      if (!watch.paused) break;
      await world.signal("lone", "a", 2);
      await world.signal("lone", "a", 3);
      const result = await world.run(world.client.result("lone"), 60_000);
      expect([JSON.stringify([large, 1]), "[2,3]"], `paused before call ${nth}`).toContain(
        JSON.stringify(result),
      );
      if (JSON.stringify(result) === "[2,3]") forgot++;
      await checkWhole(world);
    }
    expect(forgot).toBeGreaterThan(0);
  },
);

test("defect 8: a watcher that dies while it forgets leaves nothing half", async () => {
  for (let nth = 1; ; nth++) {
    const world = await signalled();
    const dying = world.broker.connect();
    const watch = pausedBefore(dying, nth, async () => dying.kill());
    void forgetting(world, watch.bus).run(10);
    await world.clock.advance(1_000);
    if (!watch.paused) break;
    const handle = await world.start("hears", null, "lone");
    await world.signal("lone", "a", 2);
    await world.signal("lone", "a", 3);
    expect([JSON.stringify([large, 1]), "[2,3]"], `dies before call ${nth}`).toContain(
      JSON.stringify(await world.run(handle.result(), 60_000)),
    );
    await checkWhole(world);
  }
});
