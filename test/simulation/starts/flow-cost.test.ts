/** What a limit costs: durable writes of a start under limits, beside those of a start without. */
import { expect, test } from "vitest";
import type { FlowOptions } from "../../../schemas/index.ts";
import { bucketStream } from "../../../shared/bus/index.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const calm = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;
const work = defineActivity("work", {
  run: async (_ctx, ms: number) => {
    await new Promise<void>((resolve) => world.clock.after(ms, resolve));
  },
});
const app = collectApp({
  work,
  job: defineOrchestration("job", { run: (ctx, ms: number) => ctx.run(work, ms) }),
});

let world: World;

/** Everything that is stored but signs of life, which go by the clock. */
async function writes(): Promise<number> {
  const { names, outside } = world;
  const signsOfLife = (["leases", "engine", "workers", "services"] as const).map((name) =>
    bucketStream(names.bucket(name)),
  );
  const streams = (await world.run(outside.streamNames(">"))).filter((name) => !signsOfLife.includes(name));
  let sum = 0;
  for (const stream of streams) {
    const info = await world.run(outside.streamInfo(stream));
    if (info) sum += info.lastSeq - (first.get(stream) ?? info.firstSeq - 1);
    if (info && !first.has(stream)) first.set(stream, info.firstSeq - 1);
  }
  return sum;
}
const first = new Map<string, number>();

/** Writes per start: `count` jobs of `ms`, one every `gapMs`, of one key. */
async function cost(flow: Omit<FlowOptions, "key"> | undefined, count: number, ms: number, gapMs: number) {
  world = new World({ seed: 1, app, faults: calm, layout: "shared" });
  first.clear();
  await world.prepare();
  for (let i = 0; i < 2; i++) await world.orchestrator();
  for (let i = 0; i < 4; i++) await world.worker();
  const start = (id: string) =>
    world.client.start("job", ms, { id, ...(flow && { flow: { key: "k", ...flow } }) });
  // The first start of all makes the keeper.
  await world.run((await world.run(start("warm"))).result(), 600_000);
  await world.clock.advance(5_000);
  const before = await writes();
  const handles = [];
  for (let i = 0; i < count; i++) {
    const sent = start(`j${i}`);
    handles.push(gapMs > 0 ? await world.run(sent) : sent);
    if (gapMs > 0) await world.clock.advance(gapMs);
  }
  for (const handle of await world.run(Promise.all(handles))) await world.run(handle.result(), 600_000);
  await world.clock.advance(5_000);
  return ((await writes()) - before) / count;
}

/** A message with no other within a tenth of a second shares no commit. */
const alone = 0.1;

test.each([
  ["at once, room for all", { concurrency: 1000 }, 100, 500, 0, 1],
  ["at once, three at a time", { concurrency: 3 }, 100, 50, 0, 1],
  ["twenty a second, room for all", { concurrency: 1000 }, 100, 500, 50, 1 + alone],
  ["twenty a second, one at a time", { concurrency: 1 }, 100, 60, 50, 1 + alone],
  ["one after the other, a rate", { rate: { limit: 1000, per: "1s" } }, 30, 50, 1000, 1],
  ["one after the other, each end told alone", { concurrency: 1 }, 30, 50, 1000, 2],
] as const)("a limit costs a durable write: %s", async (_, flow, count, ms, gapMs, most) => {
  const plain = await cost(undefined, count, ms, gapMs);
  expect((await cost(flow, count, ms, gapMs)) - plain).toBeLessThanOrEqual(most);
});
