/**
 * Schedules in the whole engine: every time is handled once, also when processes die and messages are lost;
 * overlap, pause, trigger, backfill, limit and end do what they say (SCHEDULE-1 to SCHEDULE-4).
 */
import { expect, test } from "vitest";
import {
  type ScheduleCommand,
  type ScheduleSpec,
  scheduleInstance,
  scheduleOrchestration,
  scheduleSignal,
} from "../../../schemas/index.ts";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { encode } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const lateSchedules = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;

const app = collectApp({
  quick: defineOrchestration("quick", { run: async (_ctx, input: unknown) => input }),
  slow: defineOrchestration("slow", { run: (ctx, ms: number) => ctx.sleep(ms) }),
  careful: defineOrchestration("careful", {
    async run(ctx) {
      try {
        await ctx.sleep("1h");
      } catch (error) {
        await ctx.uncancellable((own) => own.sleep("2s"));
        throw error;
      }
    },
  }),
});

let world: World;
async function open(
  options: { seed?: number; faulty?: boolean; alwaysReplay?: boolean } = {},
): Promise<World> {
  const { seed = 1, faulty = false, alwaysReplay = false } = options;
  world = new World({ seed, app, faults: faulty ? someFaults : lateSchedules, alwaysReplay });
  await world.prepare();
  return world;
}

const every = (orchestration: string, input: unknown, more: Partial<ScheduleSpec> = {}) => ({
  spec: { orchestration, input, every: "10s", ...more } as ScheduleSpec,
});
/** As the client does: its times count from now, however late its keeper begins. */
const create = (id: string, input: { spec: ScheduleSpec }) =>
  world.start(scheduleOrchestration, { ...input, cursor: world.clock.now() }, scheduleInstance(id));
let commands = 0;
async function tell(id: string, command: ScheduleCommand): Promise<void> {
  const subject = world.names.signal(scheduleInstance(id), scheduleSignal);
  const msgId = `command-${++commands}`;
  const send = () => world.outside.publish(subject, encode(command), { msgId, timeoutMs: 500 });
  while ((await world.run(send())).kind !== "stored");
}
const status = async (id: string) =>
  (await world.run(world.client.status(scheduleInstance(id)))).customStatus;
/** Instances of the schedule, in order of their times. */
const runs = async (id: string) =>
  (await world.run(world.client.list({ prefix: `${id}-`, limit: 1000 })))
    .map(({ instanceId, status: how, startedAt = 0, endedAt }) => ({ instanceId, how, startedAt, endedAt }))
    .sort((a, b) => a.instanceId.localeCompare(b.instanceId));
const timeOf = (instanceId: string) => {
  const [, y, mo, d, h, mi, s] = /-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(instanceId) ?? [];
  return Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`);
};
const expectedTimes = (from: number, to: number, everyMs = 10_000) => {
  const first = (Math.floor(from / everyMs) + 1) * everyMs;
  return Array.from(
    { length: Math.max(0, Math.floor((to - first) / everyMs) + 1) },
    (_, i) => first + i * everyMs,
  );
};
const check = async (id: string) => checkHistory((await world.history(scheduleInstance(id))) ?? []);

test.each([false, true])(
  "every time starts one run with the schedule's input, always replaying %s",
  async (alwaysReplay) => {
    await open({ alwaysReplay });
    await world.orchestrator();
    const from = world.clock.now();
    await create("a", every("quick", { n: 1 }, { overlap: "allow" }));
    await world.clock.advance(305_000);
    const started = await runs("a");
    expect(started.map(({ instanceId }) => timeOf(instanceId))).toEqual(
      expectedTimes(from, world.clock.now()),
    );
    for (const { how } of started) expect(how).toBe("completed");
    // Thirty runs, and its history is as short as it was.
    const commits = (await world.history(scheduleInstance("a"))) ?? [];
    checkHistory(commits);
    const last = commits.at(-1)?.execution;
    expect(last).toBeGreaterThanOrEqual(2);
    expect(
      commits.filter(({ execution }) => execution === last).flatMap(({ events }) => events).length,
    ).toBeLessThan(600);
  },
);

const points: FaultPoint[] = [
  "turn.before_append",
  "turn.after_append",
  "effects.half_published",
  "turn.after_effects",
  "continue.between_executions",
];
const deaths = points.flatMap((point) => [1, 2, 5].map((count) => ({ point, count })));

test.each(deaths)("no time is missed or doubled: an owner dies at $point, $count", async (death) => {
  await open();
  const from = world.clock.now();
  const first = await world.orchestrator(death);
  await create("a", every("quick", 1, { overlap: "buffer-all" }));
  await world.clock.advance(65_000);
  first.kill();
  await world.clock.advance(20_000);
  await world.orchestrator();
  await world.clock.advance(60_000);
  const to = world.clock.now();
  const times = (await runs("a")).map(({ instanceId }) => timeOf(instanceId));
  expect(times).toEqual(expectedTimes(from, to));
  for (const { how } of await runs("a")) expect(how).toBe("completed");
  await check("a");
});

/** A schedule whose next time is far away has no timer in its owner's memory. */
test.each(points)(
  "no time is missed or doubled where the server wakes it: an owner dies at %s",
  async (point) => {
    await open();
    const from = world.clock.now();
    const first = await world.orchestrator({ point, count: 2 });
    await create("a", every("quick", 1, { every: "30s", overlap: "buffer-all" }));
    await world.clock.advance(95_000);
    first.kill();
    await world.clock.advance(40_000);
    await world.orchestrator();
    await world.clock.advance(100_000);
    const times = (await runs("a")).map(({ instanceId }) => timeOf(instanceId));
    expect(times).toEqual(expectedTimes(from, world.clock.now(), 30_000));
    const commits = (await world.history(scheduleInstance("a"))) ?? [];
    checkHistory(commits);
    const fired = commits.filter(({ events }) => events.some(({ kind }) => kind === "timer.fired"));
    expect(fired.length).toBeGreaterThan(2);
    // The first time may be near when it is created.
    for (const { inbox } of fired.slice(1)) expect(inbox.length).toBeGreaterThan(0);
  },
);

test.each([1, 2, 3])("no time is missed or doubled on bad days, seed %i", async (seed) => {
  await open({ seed, faulty: true });
  const from = world.clock.now();
  const members = [await world.orchestrator(), await world.orchestrator()];
  await create("a", every("quick", 1, { overlap: "buffer-all" }));
  for (let strike = 0; strike < 3; strike++) {
    await world.clock.advance(world.random.next() * 30_000);
    members.shift()?.kill();
    await world.clock.advance(world.random.next() * 15_000);
    world.broker.stop();
    await world.clock.advance(world.random.next() * 5000);
    world.broker.start();
    members.push(await world.orchestrator());
  }
  await world.clock.advance(30_000);
  const expected = expectedTimes(from, world.clock.now());
  const times = async () => (await runs("a")).map(({ instanceId }) => timeOf(instanceId));
  // One after the other, over a bus that loses messages: it takes a while to catch up.
  for (let waitedMs = 0; waitedMs < 900_000; waitedMs += 10_000) {
    if ((await times()).length >= expected.length) break;
    await world.clock.advance(10_000);
  }
  const seen = await times();
  expect(seen.slice(0, expected.length), `seed ${seed}`).toEqual(expected);
  expect(new Set(seen).size).toBe(seen.length);
  await check("a");
});

test("skip: a time that comes while the run before goes on is left out", async () => {
  await open();
  await world.orchestrator();
  await create("a", every("slow", 25_000));
  await world.clock.advance(125_000);
  const started = await runs("a");
  for (const [i, run] of started.entries()) {
    const before = started[i - 1];
    if (before) expect(run.startedAt).toBeGreaterThanOrEqual(before.endedAt ?? Number.POSITIVE_INFINITY);
  }
  expect(started.length).toBe(4);
  expect(await status("a")).toMatchObject({ runs: 4, skipped: 8, waiting: 0 });
});

test("buffer-one: one waits, the others are left out; buffer-all: all wait", async () => {
  await open();
  await world.orchestrator();
  await create("one", every("slow", 25_000, { overlap: "buffer-one" }));
  await create("all", every("slow", 25_000, { overlap: "buffer-all", limit: 4 }));
  await world.clock.advance(125_000);
  expect(await runs("one")).toHaveLength(5);
  expect(await status("one")).toMatchObject({ waiting: 1 });
  const all = await runs("all");
  expect(all).toHaveLength(4);
  // The times of the runs are ten seconds apart, the runs twenty-five.
  expect(all.map(({ instanceId }) => timeOf(instanceId) - timeOf(all[0]?.instanceId ?? ""))).toEqual([
    0, 10_000, 20_000, 30_000,
  ]);
  expect((all[3]?.startedAt ?? 0) - (all[0]?.startedAt ?? 0)).toBeGreaterThanOrEqual(75_000);
});

test("cancel-other lets the run before clean up, terminate-other does not; neither runs beside it", async () => {
  await open();
  await world.orchestrator();
  await create("soft", every("careful", null, { overlap: "cancel-other" }));
  await create("hard", every("careful", null, { overlap: "terminate-other" }));
  await world.clock.advance(65_000);
  for (const [id, how] of [
    ["soft", "cancelled"],
    ["hard", "terminated"],
  ] as const) {
    const started = await runs(id);
    expect(started.length, id).toBeGreaterThanOrEqual(5);
    expect(started.slice(0, -1).map((run) => run.how)).toEqual(started.slice(0, -1).map(() => how));
    for (const [i, run] of started.entries()) {
      const before = started[i - 1];
      if (before) expect(run.startedAt).toBeGreaterThanOrEqual(before.endedAt ?? Number.POSITIVE_INFINITY);
    }
    await check(id);
  }
  const [first, second] = await runs("soft");
  expect((second?.startedAt ?? 0) - timeOf(second?.instanceId ?? "")).toBeGreaterThanOrEqual(2000);
  expect(first?.endedAt).toBeDefined();
});

test("allow: runs go on beside each other", async () => {
  await open();
  await world.orchestrator();
  await create("a", every("slow", 35_000, { overlap: "allow" }));
  await world.clock.advance(45_000);
  expect((await runs("a")).filter(({ how }) => how === "running").length).toBeGreaterThanOrEqual(3);
});

test("paused it starts nothing, and what came meanwhile is left out; a note says why", async () => {
  await open();
  await world.orchestrator();
  await create("a", every("quick", 1));
  await world.clock.advance(25_000);
  await tell("a", { kind: "pause", note: "the printer is on fire" });
  await world.clock.advance(10);
  const before = (await runs("a")).length;
  await world.clock.advance(60_000);
  expect(await runs("a")).toHaveLength(before);
  const view = await world.run(world.client.status(scheduleInstance("a")));
  expect(view.input).toMatchObject({ paused: { note: "the printer is on fire" } });
  expect(view.customStatus).not.toHaveProperty("next");
  await tell("a", { kind: "resume" });
  await world.clock.advance(25_000);
  expect((await runs("a")).length - before).toBeLessThanOrEqual(3);
  expect((await runs("a")).length).toBeGreaterThan(before);
  await check("a");
});

test("triggered it runs at once, and once however often the command comes", async () => {
  await open();
  await world.orchestrator();
  await create("a", every("quick", 1, { every: "1h", overlap: "buffer-all" }));
  for (let i = 0; i < 3; i++) await tell("a", { kind: "trigger", token: "abc" });
  await tell("a", { kind: "trigger", token: "def" });
  await world.clock.advance(1000);
  expect((await runs("a")).map(({ instanceId }) => instanceId)).toEqual(["a-tabc", "a-tdef"]);
  expect(await status("a"), "they are none of the clock's").toMatchObject({ runs: 0 });
});

test("backfilled it runs what was before, each time once", async () => {
  await open();
  await world.orchestrator();
  await world.clock.advance(100_000);
  const now = world.clock.now();
  await create("a", every("quick", 1));
  for (let i = 0; i < 2; i++)
    await tell("a", { kind: "backfill", from: now - 60_000, to: now, overlap: "buffer-all" });
  await world.clock.advance(5000);
  const times = (await runs("a")).map(({ instanceId }) => timeOf(instanceId)).filter((time) => time <= now);
  expect(times).toEqual(expectedTimes(now - 60_001, now));
  await check("a");
});

test("a limit of runs, an end, and single times: then it is over", async () => {
  await open();
  await world.orchestrator();
  const now = world.clock.now();
  const limited = await create("limited", every("quick", 1, { limit: 3 }));
  const ended = await create("ended", every("quick", 1, { endAt: now + 35_000 }));
  const single = await create("single", {
    spec: {
      orchestration: "quick",
      input: 1,
      at: [now + 5000, new Date(now + 15_000).toISOString()],
    } as ScheduleSpec,
  });
  expect(await world.run(limited.result(), 120_000)).toMatchObject({ runs: 3 });
  expect(await world.run(ended.result(), 120_000)).toMatchObject({
    runs: expectedTimes(now, now + 35_000).length,
  });
  expect(await world.run(single.result(), 120_000)).toMatchObject({ runs: 2 });
});

test("what was missed for longer than it catches up is let go, and counted", async () => {
  await open();
  const first = await world.orchestrator();
  await create("a", every("quick", 1, { catchUp: "30s", overlap: "buffer-all" }));
  await world.clock.advance(25_000);
  first.kill();
  await world.clock.advance(300_000);
  await world.orchestrator();
  await world.clock.advance(20_000);
  const { missed = 0, runs: started = 0 } = (await status("a")) as { missed?: number; runs?: number };
  expect(missed).toBeGreaterThanOrEqual(25);
  expect(missed + started).toBeGreaterThanOrEqual(33);
  await check("a");
});

test("changed, it goes on by the new times at once; what is no schedule changes nothing and is shown", async () => {
  await open();
  await world.orchestrator();
  await create("a", every("quick", 1));
  await world.clock.advance(15_000);
  await tell("a", { kind: "update", spec: { orchestration: "quick", cron: "99 * * * *" } as ScheduleSpec });
  await world.clock.advance(1000);
  expect(await status("a")).toMatchObject({ error: expect.stringContaining("there is no minute: 99") });
  const before = (await runs("a")).length;
  await tell("a", { kind: "update", spec: every("quick", 2, { every: "1h" }).spec });
  await world.clock.advance(60_000);
  expect((await runs("a")).length).toBe(before);
  const view = await world.run(world.client.status(scheduleInstance("a")));
  expect(view.input).toMatchObject({ spec: { every: "1h", input: 2 } });
});

test("deleted, it starts nothing more and ends when its run has ended", async () => {
  await open();
  await world.orchestrator();
  const handle = await create("a", every("slow", 25_000));
  await world.clock.advance(15_000);
  await tell("a", { kind: "delete" });
  expect(await world.run(handle.result(), 60_000)).toMatchObject({ deleted: true, runs: 1 });
  await world.clock.advance(60_000);
  expect(await runs("a")).toHaveLength(1);
  expect((await runs("a"))[0]?.how).toBe("completed");
  expect((await world.run(world.client.dead.list({ limit: 10 }))).total).toBe(0);
});

test("a schedule that is none fails with what is wrong; one whose orchestration is unknown fails its runs", async () => {
  await open();
  await world.orchestrator();
  const none = await create("none", { spec: { orchestration: "quick", cron: "0 25 * * *" } as ScheduleSpec });
  await expect(world.run(none.result(), 60_000)).rejects.toMatchObject({
    code: "invalid_schedule",
    message: expect.stringContaining("there is no hour: 25"),
  });
  await create("lost", every("nobody-has-it", 1));
  await world.clock.advance(35_000);
  for (const { how } of await runs("lost")) expect(how).toBe("failed");
  expect((await runs("lost")).length).toBeGreaterThanOrEqual(3);
});

test("an id that somebody else has taken does not hold the schedule up", async () => {
  await open();
  await world.orchestrator();
  const taken = (Math.floor(world.clock.now() / 10_000) + 1) * 10_000;
  const id = `a-${new Date(taken).toISOString().replace(/[-:]|\.000/g, "")}`;
  await world.start("slow", 600_000, id);
  await create("a", every("quick", 1));
  await world.clock.advance(35_000);
  expect((await runs("a")).filter(({ how }) => how === "completed").length).toBeGreaterThanOrEqual(2);
});
