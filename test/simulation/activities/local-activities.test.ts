/**
 * Activities in the orchestrator's process: no worker, no queue, one history append a step; and owners that die at every
 * point of it (LOCAL-1–LOCAL-3 in services/orchestrator/local/local-work.ts).
 */
import { expect, test } from "vitest";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { NonRetryableError } from "../../../shared/errors/index.ts";
import { fixedGeneration } from "../../../shared/fleet/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const lateSchedules = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [125, 125] } as const;

let world: World;
const ran: string[] = [];
const aborted: string[] = [];
let failures = 0;

const add = defineActivity("add", {
  run: (_ctx, n: number) => {
    ran.push(`add ${n}`);
    return n + 1;
  },
});
const slow = defineActivity("slow", {
  async run(ctx, ms: number) {
    ran.push(`slow by ${ctx.workerId}`);
    ctx.signal.addEventListener("abort", () => aborted.push(String(ctx.signal.reason.code)));
    await sleep(world.clock, ms);
    return "slept";
  },
});
const flaky = defineActivity("flaky", {
  retry: { maxAttempts: 5, initialDelay: "2s", factor: 1 },
  run: (ctx) => {
    ran.push(`flaky ${ctx.attempt}`);
    if (ctx.attempt <= failures) throw new Error("not yet");
    return ctx.attempt;
  },
});
const hopeless = defineActivity("hopeless", {
  run: () => {
    throw new NonRetryableError("never");
  },
});
const chatty = defineActivity("chatty", {
  retry: { maxAttempts: 1 },
  run: (ctx) => ctx.stream.write("hello"),
});
const big = defineActivity("big", { run: () => "x".repeat(400_000) });

const app = collectApp({
  ...{ add, slow, flaky, hopeless, chatty, big },
  chain: defineOrchestration("chain", {
    async run(ctx, n: number) {
      let value = 0;
      for (let i = 0; i < n; i++) value = await ctx.local(add, value);
      return value;
    },
  }),
  rested: defineOrchestration("rested", {
    async run(ctx, ms: number) {
      await ctx.sleep("5s");
      const slept = await ctx.local(slow, ms);
      return [slept, await ctx.local(add, 1)];
    },
  }),
  patient: defineOrchestration("patient", { run: (ctx) => ctx.local(flaky, null) }),
  bounded: defineOrchestration("bounded", {
    run: (ctx, options: { startToClose?: string; scheduleToClose?: string }) =>
      ctx.local(slow, 60_000, { ...options, retry: { maxAttempts: 2, initialDelay: 10 } } as object),
  }),
  given: defineOrchestration("given", { run: (ctx, name: string) => ctx.local(name, null) }),
  raced: defineOrchestration("raced", {
    run: (ctx) => Promise.race([ctx.local(slow, 60_000), ctx.sleep(100).then(() => "over")]),
  }),
  disturbed: defineOrchestration("disturbed", {
    async run(ctx, signals: number) {
      const slept = ctx.local(slow, 40);
      for (let i = 0; i < signals; i++) await ctx.waitForSignal("note");
      return slept;
    },
  }),
  measured: defineOrchestration("measured", {
    run: async (ctx) => (await ctx.local(big, null)).length,
  }),
});

async function open(
  options: { alwaysReplay?: boolean; seed?: number; faulty?: boolean } = {},
): Promise<World> {
  const { seed = 1, faulty = false, ...rest } = options;
  ran.length = 0;
  aborted.length = 0;
  failures = 0;
  world = new World({ seed, app, faults: faulty ? someFaults : lateSchedules, ...rest });
  await world.prepare();
  return world;
}

const stored = async (stream: string) => (await world.run(world.outside.streamInfo(stream)))?.lastSeq ?? 0;
const queued = async () =>
  (await world.run(world.outside.streamInfo(world.names.activitiesStream)))?.messages ?? -1;
const waiting = async () =>
  (await world.run(world.outside.streamInfo(world.names.inboxStream)))?.messages ?? -1;

test.each([false, true])(
  "short steps share an append and leave nothing else behind, always replaying %s",
  async (alwaysReplay) => {
    await open({ alwaysReplay });
    await world.orchestrator();
    const before = await stored(world.names.inboxStream);
    const handle = await world.start("chain", 20, "a");
    expect(await world.run(handle.result(), 60_000)).toBe(20);
    expect(ran).toHaveLength(20);
    expect((await stored(world.names.inboxStream)) - before, "the start alone").toBe(1);
    expect(await queued()).toBe(0);
    const commits = (await world.history("a")) ?? [];
    checkHistory(commits);
    expect(commits.length).toBeLessThan(10);
    expect(commits.flatMap(({ rounds = [] }) => rounds).length + commits.length).toBe(21);
    expect(await waiting()).toBe(0);
  },
);

test("a step that is over while another turn is under way is not begun again", async () => {
  await open();
  await world.orchestrator();
  const handle = await world.start("disturbed", 60, "a");
  for (let i = 0; i < 60; i++) {
    void handle.signal("note", i);
    await world.clock.advance(1);
  }
  expect(await world.run(handle.result(), 60_000)).toBe("slept");
  expect(ran).toHaveLength(1);
});

const points: FaultPoint[] = [
  "turn.before_append",
  "turn.after_append",
  "effects.half_published",
  "turn.after_effects",
];
const deaths = points.flatMap((point) => [1, 2, 3].map((count) => ({ point, count })));

test.each(deaths)("an owner dies at $point, $count: its successor goes on, by the anchor", async (death) => {
  await open();
  const first = await world.orchestrator(death);
  const handle = await world.start("chain", 20, "a"); // several commits
  await world.clock.advance(2000);
  first.kill();
  await world.orchestrator();
  expect(await world.run(handle.result(), 60_000)).toBe(20);
  checkHistory((await world.history("a")) ?? []);
});

test.each(deaths)("an owner dies at $point, $count: its successor goes on, after a timer", async (death) => {
  await open();
  const first = await world.orchestrator(death);
  const handle = await world.start("rested", 3000, "a");
  await world.clock.advance(6500);
  first.kill();
  await world.orchestrator();
  expect(await world.run(handle.result(), 120_000)).toEqual(["slept", 2]);
  checkHistory((await world.history("a")) ?? []);
  await world.clock.advance(10_000); // a wake may still be on its way
  expect(await waiting(), "no schedule is left").toBe(0);
});

test.each(deaths)("an owner dies at $point, $count: the next attempt comes all the same", async (death) => {
  await open();
  failures = 2;
  const first = await world.orchestrator(death);
  const handle = await world.start("patient", null, "a");
  await world.clock.advance(3000);
  first.kill();
  await world.orchestrator();
  expect(await world.run(handle.result(), 120_000)).toBe(3);
  checkHistory((await world.history("a")) ?? []);
});

const lastDeaths = points.flatMap((point) => [3, 4, 5].map((count) => ({ point, count })));

test.each(lastDeaths)(
  "an owner dies at $point, $count, with the end recorded: the schedule of the attempt brings a successor that shows it",
  async (death) => {
    await open();
    failures = 2;
    const first = await world.orchestrator(death);
    const handle = await world.start("patient", null, "a");
    await world.clock.advance(4_500); // the third attempt ran at 4 s
    first.kill();
    await world.orchestrator();
    expect(await world.run(handle.result(), 120_000)).toBe(3);
    checkHistory((await world.history("a")) ?? []);
  },
);

test.each([1, 2, 3])("bad messages and two owners, seed %i", async (seed) => {
  await open({ seed, faulty: true });
  failures = 3;
  const first = await world.orchestrator();
  await world.orchestrator();
  const chain = await world.start("chain", 6, "a");
  const patient = await world.start("patient", null, "b");
  await world.clock.advance(world.random.next() * 3000);
  first.kill();
  expect(await world.run(chain.result(), 600_000)).toBe(6);
  expect(await world.run(patient.result(), 600_000)).toBe(4);
  for (const id of ["a", "b"]) checkHistory((await world.history(id)) ?? []);
});

test("an owner that is stopped in good order lets go; its successor runs the step again", async () => {
  await open();
  const first = await world.orchestrator();
  const handle = await world.start("rested", 8000, "a");
  await world.clock.advance(7000);
  await world.run(first.stop());
  expect(aborted).toEqual(["cancelled"]);
  const second = await world.orchestrator();
  expect(await world.run(handle.result(), 120_000)).toEqual(["slept", 2]);
  expect(ran.filter((one) => one.startsWith("slow"))).toEqual([
    `slow by ${first.id}`,
    `slow by ${second.id}`,
  ]);
});

test("a run that takes too long is ended, told so, and tried again", async () => {
  await open();
  await world.orchestrator();
  const handle = await world.start("bounded", { startToClose: "1s" }, "a");
  await expect(world.run(handle.result(), 60_000)).rejects.toMatchObject({
    code: "timeout",
    message: "slow did not finish within 1000 ms",
  });
  expect(ran).toHaveLength(2);
  expect(aborted).toEqual(["timeout", "timeout"]);
});

test("all attempts together may take no longer than schedule-to-close", async () => {
  await open();
  await world.orchestrator();
  const handle = await world.start("bounded", { startToClose: "3s", scheduleToClose: "4s" }, "a");
  await expect(world.run(handle.result(), 60_000)).rejects.toMatchObject({
    code: "timeout",
    details: { timeout: "schedule_to_close" },
  });
  expect(ran).toHaveLength(2);
});

test("what nobody waits for any more is told to stop", async () => {
  await open();
  await world.orchestrator();
  const handle = await world.start("raced", null, "a");
  expect(await world.run(handle.result(), 60_000)).toBe("over");
  await world.clock.advance(10);
  expect(aborted).toEqual(["cancelled"]);
});

test("bad input: an unknown name, an error that is final, a stream that is not there", async () => {
  await open();
  await world.orchestrator();
  const end = async (name: string) => world.run((await world.start("given", name, name)).result(), 60_000);
  await expect(end("missing")).rejects.toMatchObject({
    code: "unknown_activity",
    message:
      'no activity named "missing" in the orchestrator\'s application; there are: add, slow, flaky, hopeless, chatty, big',
  });
  await expect(end("hopeless")).rejects.toMatchObject({ message: "never" });
  await expect(end("chatty")).rejects.toMatchObject({ code: "not_on_a_worker" });
});

test("a big result lies in the object store", async () => {
  await open();
  await world.orchestrator();
  const handle = await world.start("measured", null, "a");
  expect(await world.run(handle.result(), 60_000)).toBe(400_000);
});

test("while an older process is alive nothing is written that it cannot read", async () => {
  await open();
  await world.orchestrator(undefined, { generation: fixedGeneration(1) });
  const handle = await world.start("chain", 1, "a");
  await expect(world.run(handle.result(), 60_000)).rejects.toMatchObject({ code: "needs_newer_fleet" });
});
