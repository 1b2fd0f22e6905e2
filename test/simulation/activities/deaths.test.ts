/**
 * Work follows the death of its worker, not a waiting time, and silence is no death: law D1, kept in
 * services/orchestrator/deaths.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { releaseLeasesOf } from "../../../shared/leases/index.ts";
import { isSessionLost } from "../../../shared/sdk/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import type { OnPoint } from "../../../shared/testing/world/members.ts";
import { type Member, World } from "../../../shared/testing/world/world.ts";

let world: World;
let runs: string[] = [];
let onRun: (workerId: string) => void = () => undefined;
let onPoint: OnPoint = () => undefined;

const long = defineActivity("long", {
  input: z.int(),
  run: async (ctx, ms) => {
    runs.push(ctx.workerId);
    onRun(ctx.workerId);
    await new Promise<void>((resolve) => world.clock.after(ms, resolve));
    return ms;
  },
});
const byLane = defineOrchestration("by-lane", { input: z.int(), run: (ctx, ms) => ctx.run(long, ms) });
// What has a heartbeat to keep goes by the queue.
const byQueue = defineOrchestration("by-queue", {
  input: z.int(),
  run: (ctx, ms) => ctx.run(long, ms, { heartbeatTimeout: "1h" }),
});
const twoSteps = defineOrchestration("two-steps", {
  input: z.int(),
  run: async (ctx, ms) => (await ctx.run(long, ms)) + (await ctx.run(long, ms)),
});
const held = defineSession("held", {
  init: () => ({}),
  calls: {
    work: call({
      run: (_state, _input: null, ctx) => {
        onRun(ctx.workerId);
        return null;
      },
    }),
  },
});
const callsOnce = defineOrchestration("calls-once", {
  run: async (ctx) => {
    const session = await ctx.openSession(held, { leaseTtl: "10m", creationTimeout: "1m" });
    return await session.work(null).catch((error: unknown) => isSessionLost(error) && "lost");
  },
});
const callsUntilTold = defineOrchestration("calls-until-told", {
  run: async (ctx) => {
    const session = await ctx.openSession(held, { leaseTtl: "10m", creationTimeout: "1m" });
    return await Promise.race([session.work(null), ctx.waitForSignal("enough").then(() => "enough")]);
  },
});
const app = collectApp({ long, byLane, byQueue, twoSteps, held, callsOnce, callsUntilTold });
const ways = ["by-lane", "by-queue"];

beforeEach(async () => {
  runs = [];
  onRun = () => undefined;
  onPoint = () => undefined;
  const atPoint: OnPoint = (...args) => onPoint(...args);
  world = new World({ seed: 1, app, faults: noFaults, ackWait: "10m", onPoint: atPoint });
  await world.prepare();
});

async function untilRuns(count: number): Promise<void> {
  for (let passed = 0; runs.length < count; passed += 10) {
    expect(passed, `${runs.length} of ${count} runs`).toBeLessThan(60_000);
    await world.clock.advance(10);
  }
}

const died = () => world.happenings.flatMap((it) => (it.kind === "worker.died" ? [it.workerId] : []));

describe.each(ways)("%s", (way) => {
  test("a worker dies in the middle: another one goes on, and nobody waits for an acknowledgement", async () => {
    await world.orchestrator();
    const [first, second] = [await world.worker(), await world.worker()];
    const handle = await world.start(way, 3_000, "a");
    await untilRuns(1);
    await world.clock.advance(500);
    const victim = runs[0] === first.id ? first : second;
    victim.kill();
    await untilRuns(2);
    expect(new Set(runs)).toEqual(new Set([first.id, second.id]));
    expect(died()).toEqual([victim.id]);
    expect(await world.run(handle.result())).toBe(3_000);
    expect(runs).toHaveLength(2);
    checkHistory((await world.history("a")) ?? []);
  });

  test("a worker dies before it could say that it has the task", async () => {
    await world.orchestrator();
    const workers = [await world.worker(), await world.worker()];
    onRun = (workerId) => {
      onRun = () => undefined;
      workers.find(({ id }) => id === workerId)?.kill();
    };
    const handle = await world.start(way, 3_000, "a");
    await untilRuns(2);
    await world.clock.advance(10);
    expect(new Set(runs).size).toBe(2);
    expect(died()).toEqual([runs[0]]);
    expect(await world.run(handle.result())).toBe(3_000);
    expect(runs).toHaveLength(2);
  });

  test("the next one dies soon after, and the one after that", async () => {
    await world.orchestrator();
    const workers = new Map<string, Member>();
    for (let i = 0; i < 4; i++) {
      const worker = await world.worker();
      workers.set(worker.id, worker);
    }
    const handle = await world.start(way, 3_000, "a");
    for (let deaths = 1; deaths <= 3; deaths++) {
      await untilRuns(deaths);
      workers.get(runs[deaths - 1] ?? "")?.kill();
    }
    await untilRuns(4);
    expect(died()).toEqual(runs.slice(0, 3));
    expect(await world.run(handle.result())).toBe(3_000);
    expect(runs).toHaveLength(4);
  });

  test("the only worker dies: the next one to start gets the task at once", async () => {
    await world.orchestrator();
    const first = await world.worker();
    const handle = await world.start(way, 3_000, "a");
    await untilRuns(1);
    first.kill();
    while (died().length === 0) await world.clock.advance(10);
    const second = await world.worker();
    await untilRuns(2);
    expect(runs).toEqual([first.id, second.id]);
    expect(await world.run(handle.result())).toBe(3_000);
  });

  test("a paused worker is not dead: its task is not run again", async () => {
    await world.orchestrator();
    const workers = [await world.worker(), await world.worker()];
    const handle = await world.start(way, 8_000, "a");
    await untilRuns(1);
    await world.clock.advance(100);
    const paused = workers.find(({ id }) => id === runs[0]);
    paused?.pause("let through");
    await world.clock.advance(5_000);
    paused?.resume();
    expect(await world.run(handle.result())).toBe(8_000);
    expect(runs).toHaveLength(1);
    expect(died()).toEqual([]);
  });

  test("a worker that reconnects is not dead either", async () => {
    await world.orchestrator();
    const workers = [await world.worker(), await world.worker()];
    const handle = await world.start(way, 3_000, "a");
    await untilRuns(1);
    await world.clock.advance(100);
    const cut = workers.find(({ id }) => id === runs[0]);
    cut?.bus.disconnect();
    await world.clock.advance(120);
    cut?.bus.reconnect();
    expect(await world.run(handle.result())).toBe(3_000);
    expect(runs).toHaveLength(1);
    expect(died()).toEqual([]);
  });

  test("another one is paused when a worker dies: what it may have is not run again", async () => {
    await world.orchestrator();
    const workers = [await world.worker(), await world.worker(), await world.worker()];
    const handles = [await world.start(way, 8_000, "a"), await world.start(way, 8_000, "b")];
    await untilRuns(2);
    await world.clock.advance(100);
    const [dead, paused] = runs;
    if (dead === paused) return; // chance gave both to one: nothing to tell apart
    workers.find(({ id }) => id === paused)?.pause("let through");
    workers.find(({ id }) => id === dead)?.kill();
    await world.clock.advance(2_000);
    expect(runs.filter((id) => id === paused)).toHaveLength(1);
    workers.find(({ id }) => id === paused)?.resume();
    expect(await world.run(handles[1]?.result() ?? Promise.reject(new Error("no b")))).toBe(8_000);
    expect(await world.run(handles[0]?.result() ?? Promise.reject(new Error("no a")), 1_200_000)).toBe(8_000);
    expect(runs).toHaveLength(3);
  });

  test("two orchestrators prove it: each task goes on once", async () => {
    await world.orchestrator();
    await world.orchestrator();
    const [first, second] = [await world.worker(), await world.worker()];
    const ids = ["a", "b", "c", "d", "e", "f"];
    const handles = [];
    for (const id of ids) handles.push(await world.start(way, 3_000, id));
    await untilRuns(6);
    const lost = runs.filter((id) => id === first.id).length;
    first.kill();
    await untilRuns(6 + lost);
    expect(await world.run(Promise.all(handles.map((handle) => handle.result())))).toEqual(
      ids.map(() => 3_000),
    );
    expect(runs.slice(6)).toEqual(Array.from({ length: lost }, () => second.id));
    expect(died()).toEqual([first.id]);
  });
});

describe("the holder of a session dies before it has answered the offer of a call", () => {
  let diedAt = 0;
  let worker: Member;
  beforeEach(async () => {
    await world.orchestrator();
    await world.watcher();
    worker = await world.worker();
    onRun = () => {
      diedAt = world.clock.monotonic();
      worker.kill();
    };
  });

  test("its parent saw it: the call ends at once, and not when the offer would have been given up", async () => {
    const handle = await world.start("calls-once", null, "a");
    while (diedAt === 0) await world.clock.advance(1);
    const { names, outside } = world;
    const dead = { holder: worker.id, bucket: names.bucket("leases"), prefix: "" };
    expect(await world.run(releaseLeasesOf(outside, dead, "it was ended by SIGKILL"))).toBe(1);
    expect(await world.run(handle.result())).toBe("lost");
    expect(world.clock.monotonic() - diedAt).toBeLessThan(200);
  });

  test("nobody saw it: the lease decides about the session, and the code goes on with what else comes", async () => {
    const handle = await world.start("calls-until-told", null, "a");
    while (diedAt === 0) await world.clock.advance(1);
    await world.signal("a", "enough", null);
    expect(await world.run(handle.result())).toBe("enough");
    expect(world.clock.monotonic() - diedAt).toBeLessThan(1_000);
  });
});

describe("an orchestrator", () => {
  const gained = () => world.happenings.filter((it) => it.kind === "partition.gained").length;
  const fallen = () => world.happenings.flatMap((it) => (it.kind === "orchestrator.died" ? [it.id] : []));

  test("dies: the other one has its partitions before a lease is over, and leaves its tasks where they are", async () => {
    const [first] = [await world.orchestrator(), await world.orchestrator()];
    while (gained() < 6) await world.clock.advance(10); // all four, and two given up for the second
    await world.worker();
    const ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    const handles = [];
    for (const id of ids) handles.push(await world.start("by-lane", 5_000, id));
    await untilRuns(8);
    const before = gained();
    first.kill();
    while (fallen().length === 0) await world.clock.advance(10);
    await world.clock.advance(100);
    expect(fallen()).toEqual([first.id]);
    expect(gained()).toBe(before + 2);
    expect(world.count("lease.lost"), "nothing ran out").toBe(0);
    expect(await world.run(Promise.all(handles.map((handle) => handle.result())))).toEqual(
      ids.map(() => 5_000),
    );
    expect(runs).toHaveLength(8);
    for (const id of ids) checkHistory((await world.history(id)) ?? []);
  });

  // Each waited two seconds for an answer that could not come.
  test.each([
    { at: "turn.before_append", ms: 2, what: "a result that came as the answer to the offer" },
    { at: "turn.before_append", ms: 300, what: "a result that was sent by itself" },
    { at: "turn.after_append", ms: 300, what: "a task that no worker was offered yet" },
  ])("dies with $what: the other one has it within a second", async ({ at, ms }) => {
    const [first] = [await world.orchestrator(), await world.orchestrator()];
    while (gained() < 6) await world.clock.advance(10);
    await world.worker();
    const handles = Array.from({ length: 8 }, (_, n) => world.start("two-steps", ms, `${n}`));
    let diedAt = 0;
    onPoint = (point, id, die) => {
      if (runs.length < 8 || point !== at || id !== first.id || diedAt > 0) return;
      diedAt = world.clock.monotonic();
      die();
    };
    for (const handle of handles) await world.run((await handle).result());
    expect(fallen()).toEqual([first.id]);
    expect(world.clock.monotonic() - diedAt).toBeLessThan(1_000 + 2 * ms);
    expect(runs.length).toBeGreaterThanOrEqual(16);
    for (let n = 0; n < 8; n++) checkHistory((await world.history(`${n}`)) ?? []);
  });

  test.each(["paused", "cut off for a moment"])("%s is not dead", async (how) => {
    const [first] = [await world.orchestrator(), await world.orchestrator()];
    while (gained() < 6) await world.clock.advance(10);
    const before = gained();
    if (how === "paused") first.pause("let through");
    else first.bus.disconnect();
    await world.clock.advance(how === "paused" ? 1_000 : 120);
    if (how === "paused") first.resume();
    else first.bus.reconnect();
    await world.clock.advance(5_000);
    expect(fallen()).toEqual([]);
    expect(gained()).toBe(before);
  });

  test("cut off for longer than the grace loses its partitions, and every instance ends once", async () => {
    const [first] = [await world.orchestrator(), await world.orchestrator()];
    while (gained() < 6) await world.clock.advance(10);
    await world.worker();
    const ids = ["a", "b", "c", "d", "e", "f"];
    const handles = [];
    for (const id of ids) handles.push(await world.start("by-queue", 2_000, id));
    await untilRuns(6);
    first.bus.disconnect();
    while (fallen().length === 0) await world.clock.advance(10);
    await world.clock.advance(500);
    first.bus.reconnect();
    expect(await world.run(Promise.all(handles.map((handle) => handle.result())), 600_000)).toEqual(
      ids.map(() => 2_000),
    );
    expect(runs).toHaveLength(6);
    for (const id of ids) checkHistory((await world.history(id)) ?? []);
  });
});
