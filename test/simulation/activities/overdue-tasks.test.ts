/** What an activity's deadlines end does not go on on a worker, and does not begin on one that comes later. */
import { beforeEach, describe, expect, test } from "vitest";
import {
  type ActivityOptions,
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { type BusFaults, noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const minute = 60_000;
let world: World;
/** What user code did, in order. */
const did: string[] = [];

const hang = async (signal: AbortSignal) => {
  did.push("began");
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  did.push("aborted");
};
const hanging = defineActivity("hanging", { run: (ctx) => hang(ctx.signal) });
const quick = defineActivity("quick", {
  run: async (ctx) => {
    did.push(`quick ${ctx.attempt}`);
    await sleep(world.clock, 3000);
    if (ctx.attempt === 1) throw new Error("first");
    return "done";
  },
});
const desk = defineSession("desk", {
  init: () => ({}),
  calls: { hang: call({ run: (_state, _input: null, ctx) => hang(ctx.signal) }) },
});
const code = (error: { details?: { timeout?: string } }) => error.details?.timeout;
const hangs = defineOrchestration("hangs", {
  run: (ctx, options: ActivityOptions) => ctx.run(hanging, null, options).catch(code),
});
const runs = defineOrchestration("runs", {
  run: (ctx, options: ActivityOptions) => ctx.run(quick, null, options).catch(code),
});
const calls = defineOrchestration("calls", {
  async run(ctx) {
    const session = await ctx.openSession(desk);
    const ended = await session.hang(null, { scheduleToClose: "5s" }).catch(code);
    await ctx.sleep("1m");
    return ended;
  },
});
const app = collectApp({ hanging, quick, desk, hangs, runs, calls });

const open = async (faults: Partial<BusFaults> = {}, dieAt?: Parameters<World["orchestrator"]>[0]) => {
  world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1], ...faults } });
  await world.prepare();
  await world.orchestrator(dieAt);
};

beforeEach(() => {
  did.length = 0;
});

describe("code that runs when its time is over", () => {
  const options = { scheduleToClose: "5s" };

  test("is aborted, and its task settled", async () => {
    await open();
    await world.worker();
    const handle = await world.start("hangs", options, "a");
    expect(await world.run(handle.result())).toBe("schedule_to_close");
    await world.clock.advance(100);
    expect(did).toEqual(["began", "aborted"]);
    expect(world.broker.streams.get(world.names.activitiesStream)?.size).toBe(0);
  });

  test("is aborted where it is a call; the session stays", async () => {
    await open();
    await world.watcher();
    await world.worker();
    const handle = await world.start("calls", null, "a");
    await world.clock.advance(10_000);
    expect(did).toEqual(["began", "aborted"]);
    expect(await world.run(handle.result())).toBe("schedule_to_close");
    expect(world.happenings.filter(({ kind }) => kind === "session.lost")).toEqual([]);
  });

  test("is aborted although no notice arrives", async () => {
    await open({ plainLost: 1 });
    await world.worker();
    await world.start("hangs", options, "a");
    await world.clock.advance(20_000);
    expect(did).toEqual(["began", "aborted"]);
  });

  test("hears of it from the next owner, when the one who recorded it died before it could say so", async () => {
    // Start, overdue.
    await open({}, { point: "effects.half_published", count: 2 });
    await world.start("hangs", { scheduleToClose: "20s" }, "a");
    // It begins so late that the end it comes to by itself is far.
    await world.clock.advance(15_000);
    await world.worker();
    await world.clock.advance(5_100);
    expect(did).toEqual(["began"]);
    await world.orchestrator();
    await world.clock.advance(5_000);
    expect(did).toEqual(["began", "aborted"]);
  });
});

describe("a task whose time was over before a worker came", () => {
  test.each([
    ["schedule_to_start", { scheduleToStart: "5s" }],
    ["schedule_to_close", { scheduleToClose: "5s" }],
  ])("does not run: %s", async (timeout, options) => {
    await open();
    const handle = await world.start("runs", options, "a");
    expect(await world.run(handle.result())).toBe(timeout);
    await world.clock.advance(2 * minute);
    await world.worker();
    await world.clock.advance(minute);
    expect(did).toEqual([]);
    expect(world.broker.streams.get(world.names.activitiesStream)?.size).toBe(0);
  });

  test("does not run, counted from the first attempt on", async () => {
    await open();
    const first = await world.worker();
    const options = { scheduleToClose: "60s", retry: { initialDelay: "40s" } };
    const handle = await world.start("runs", options, "a");
    await world.clock.advance(10_000);
    first.kill();
    // The second attempt is in the queue from 43 s on; seventeen seconds are left of the sixty.
    expect(await world.run(handle.result())).toBe("schedule_to_close");
    await world.clock.advance(5_000);
    await world.worker();
    await world.clock.advance(minute);
    expect(did).toEqual(["quick 1"]);
  });

  test("runs where it had begun in time and its worker died", async () => {
    await open();
    const first = await world.worker();
    const options = { scheduleToStart: "5s", retry: { maxAttempts: 2, initialDelay: "1s" } };
    const handle = await world.start("runs", options, "a");
    await world.clock.advance(1000);
    first.kill();
    await world.clock.advance(minute);
    await world.worker();
    expect(await world.run(handle.result(), minute)).toBe("done");
    expect(did).toEqual(["quick 1", "quick 1", "quick 2"]);
  });
});
