/** T9: what waits for an instance that was set aside has a place of its own, and comes back in order. */
import { expect, test } from "vitest";
import { encode } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { sharedPlace } from "../../../shared/history/locate.ts";
import type { InstanceHandle } from "../../../shared/sdk/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { type BusFaults, noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const app = collectApp({
  waits: defineOrchestration("waits", { run: (ctx) => ctx.waitForSignal("go") }),
  hears: defineOrchestration("hears", {
    run: async (ctx, n: number) => {
      const heard: number[] = [];
      while (heard.length < n) heard.push(await ctx.waitForSignal<number>("go"));
      return heard;
    },
  }),
});

/** Twenty times as many in earnest. */
const maxUnacknowledged = 1_000;

/** An instance whose history cannot be read until it is mended. */
async function withSick(
  n: number,
  {
    lagMs = 0,
    dedupeMs = 120_000,
    ...faults
  }: Partial<BusFaults> & { lagMs?: number; dedupeMs?: number } = {},
): Promise<{ world: World; sick: InstanceHandle; mend: () => Promise<unknown> }> {
  const world = new World({
    seed: 8,
    app,
    faults: { ...noFaults, latencyMs: [1, 1], replicaLagMs: [lagMs, lagMs], ...faults },
    dedupeMs,
    replicas: lagMs > 0 ? 3 : 1,
    layout: "shared",
    maxUnacknowledged,
  });
  await world.prepare();
  const first = await world.orchestrator();
  const sick = await world.start("hears", n, "sick");
  await world.clock.advance(1_000);
  first.kill();
  const { stream, subject } = sharedPlace(world.names, "sick", 2);
  const damage = await world.run(world.outside.publish(subject, new TextEncoder().encode("{nonsense")));
  if (damage.kind !== "stored") throw new Error("not stored");
  return { world, sick, mend: () => world.run(world.outside.deleteMessage(stream, damage.seq)) };
}

const send = (world: World, from: number, to: number, { known = true } = {}) =>
  world.run(
    Promise.all(
      Array.from({ length: to - from }, (_, i) => {
        const options = known ? { msgId: `go-${from + i}` } : {};
        return world.outside.publish(world.names.signal("sick", "go"), encode(from + i), options);
      }),
    ),
  );

const waiting = async (world: World, stream: string): Promise<number> =>
  (await world.run(world.outside.streamInfo(stream)))?.messages ?? -1;

test("defect 7: more messages than may be unacknowledged, to one that is set aside, stop nobody", async () => {
  const many = maxUnacknowledged + 200;
  const { world, mend } = await withSick(many);
  await send(world, 0, many);
  await world.orchestrator();
  await world.clock.advance(60_000);
  // One in each of the four partitions, at least.
  const ids = Array.from({ length: 8 }, (_, n) => `well-${n}`);
  const handles = await Promise.all(ids.map((id) => world.start("waits", undefined, id)));
  for (const id of ids) await world.signal(id, "go", id);
  expect(await world.run(Promise.all(handles.map((handle) => handle.result())), 20_000)).toEqual(ids);
  expect(await waiting(world, world.names.asideStream)).toBeGreaterThan(many - 100);
  await mend();
  await world.clock.advance(120_000);
  expect(await waiting(world, world.names.asideStream), "nothing is aside any more").toBe(0);
  expect(await waiting(world, world.names.inboxStream)).toBe(0);
});

test.each(["by the same owner", "by another", "by one that dies while it is at it"])(
  "defect 7: what was set aside comes back in order, before what is newer: %s",
  async (by) => {
    const many = 700;
    const { world, sick, mend } = await withSick(many);
    await send(world, 0, 400);
    const owner = await world.orchestrator();
    await world.clock.advance(30_000);
    await send(world, 400, 600);
    await world.clock.advance(10_000);
    expect(await waiting(world, world.names.asideStream)).toBeGreaterThan(500);
    if (by !== "by the same owner") owner.kill();
    await mend();
    await send(world, 600, many);
    if (by === "by one that dies while it is at it") {
      const next = await world.orchestrator({ point: "turn.after_append", count: 3 });
      await world.clock.runUntil(() => next.bus.killed, 600_000);
    }
    if (by !== "by the same owner") await world.orchestrator();
    expect(await world.run(sick.result(), 600_000)).toEqual(Array.from({ length: many }, (_, i) => i));
    checkHistory((await world.history("sick")) ?? []);
    await world.clock.advance(120_000);
    expect(await waiting(world, world.names.asideStream), "nothing is aside any more").toBe(0);
    expect(await waiting(world, world.names.inboxStream)).toBe(0);
  },
);

test("ASIDE-1: what was moved aside twice, because its acknowledgement was lost, is applied once", async () => {
  const many = 40;
  const { world, sick, mend } = await withSick(many + 1, { ackLost: 0.5, dedupeMs: 200 });
  // Only its sequence tells that a message was applied.
  await send(world, 0, many, { known: false });
  await world.orchestrator();
  await world.clock.advance(100_000);
  expect(await waiting(world, world.names.asideStream)).toBeGreaterThan(many);
  await mend();
  await world.clock.advance(60_000);
  await send(world, many, many + 1);
  expect(await world.run(sick.result(), 600_000)).toEqual(Array.from({ length: many + 1 }, (_, i) => i));
  checkHistory((await world.history("sick")) ?? []);
});

test("HISTORY-4: what was set aside a moment ago comes back, whatever copy is asked for it", async () => {
  const many = 160;
  const { world, sick, mend } = await withSick(many, { lagMs: 5_000 });
  await world.orchestrator();
  await send(world, 0, 40);
  await world.clock.advance(30_000);
  await mend();
  // One each second: the last of them were moved just before the turn that succeeds.
  for (let n = 40; n < many; n++) {
    await send(world, n, n + 1);
    await world.clock.advance(1_000);
  }
  expect(await world.run(sick.result(), 60_000)).toEqual(Array.from({ length: many }, (_, i) => i));
  await world.clock.advance(120_000);
  expect(await waiting(world, world.names.asideStream), "nothing is aside any more").toBe(0);
  expect(await waiting(world, world.names.inboxStream)).toBe(0);
});
