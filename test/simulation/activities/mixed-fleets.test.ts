/** Fleets whose workers differ: without sessions, without activities, with other types, full, or older. */
import { expect, test } from "vitest";
import { z } from "zod";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { fixedGeneration } from "../../../shared/fleet/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let world: World;

const step = defineActivity("step", { run: (ctx, _input: null) => ctx.workerId });
const who = () => call({ run: (_state: object, _input: null, ctx) => ctx.session.workerId });
const red = defineSession("red", { init: () => ({}), calls: { who: who() } });
const blue = defineSession("blue", { init: () => ({}), calls: { who: who() } });
/** One session of each kind and a plain activity; where each ran. */
const all = defineOrchestration("all", {
  run: async (ctx) => {
    await using first = await ctx.openSession(red);
    await using second = await ctx.openSession(blue);
    await using bare = await ctx.openSession();
    return {
      red: await first.who(null),
      blue: await second.who(null),
      bare: await bare.run(step, null),
      plain: await ctx.run(step, null),
    };
  },
});
const opens = defineOrchestration("opens", {
  input: z.object({ type: z.enum(["red", "blue"]), hold: z.boolean() }),
  run: async (ctx, { type, hold }) => {
    const session = await ctx.openSession(type === "red" ? red : blue, { creationTimeout: "5s" });
    const before = await session.who(null);
    if (hold) await ctx.waitForSignal("go");
    const after = await session.who(null);
    await session.close();
    return [before, after];
  },
});

const app = collectApp({ step, red, blue, all, opens });

async function open(seed: number) {
  world = new World({ seed, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
}
const worker = (settings: Record<string, string> = {}) => world.worker(undefined, { settings });

test("WORKER_MAX_SESSIONS=0: runs activities and never holds a session", async () => {
  await open(1);
  const plain = await worker({ WORKER_MAX_SESSIONS: "0" });
  const holder = await worker({ WORKER_ACTIVITY_SLOTS: "0" });
  const handle = await world.start("all", null, "a");
  expect(await world.run(handle.result())).toEqual({
    red: holder.id,
    blue: holder.id,
    bare: holder.id,
    plain: plain.id,
  });
});

test("WORKER_MAX_SESSIONS=0 everywhere: the opening says why nobody took it", async () => {
  await open(2);
  await worker({ WORKER_MAX_SESSIONS: "0" });
  const handle = await world.start("opens", { type: "red", hold: false }, "a");
  await expect(world.run(handle.result())).rejects.toThrow(/no worker serves session type red/);
  const later = await worker();
  const next = await world.start("opens", { type: "red", hold: false }, "b");
  expect(await world.run(next.result())).toEqual([later.id, later.id]);
});

test("workers that serve different types: each session goes where its type is", async () => {
  await open(3);
  const reds = await worker({ WORKER_SESSION_TYPES: "red" });
  const others = await worker({ WORKER_SESSION_TYPES: "blue,bare" });
  const handle = await world.start("all", null, "a");
  expect(await world.run(handle.result())).toMatchObject({ red: reds.id, blue: others.id, bare: others.id });
});

test("at its cap a worker serves what it holds and takes nothing new; who waits has its turn", async () => {
  await open(4);
  await worker({ WORKER_MAX_SESSIONS: "1" });
  const first = await world.start("opens", { type: "red", hold: true }, "a");
  await world.clock.advance(1_000);
  const second = await world.start("opens", { type: "blue", hold: false }, "b");
  await world.clock.advance(2_000);
  expect(world.happenings.filter(({ kind }) => kind === "session.attached")).toHaveLength(1);
  await world.signal("a", "go", 1);
  const [held] = (await world.run(first.result())) as string[];
  expect(await world.run(second.result())).toEqual([held, held]);
});

test("an orchestrator of the first generation and one of today share the work: sessions of both are served", async () => {
  await open(5);
  await world.orchestrator(undefined, { generation: fixedGeneration(1) });
  await worker();
  await worker();
  for (let i = 0; i < 12; i++) {
    const handle = await world.start("opens", { type: i % 2 ? "red" : "blue", hold: false }, `i${i}`);
    const [before, after] = (await world.run(handle.result())) as string[];
    expect(after).toBe(before);
  }
});
