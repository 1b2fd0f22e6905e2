/**
 * Schedules made and changed by the client in the whole engine: jitter, changes while no orchestrator runs,
 * future times.
 */
import { expect, test } from "vitest";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { dueAt, parseSchedule, runId, timesBetween } from "../../../shared/schedules/index.ts";
import type { ScheduleOptions } from "../../../shared/sdk/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const app = collectApp({
  quick: defineOrchestration("quick", { run: async (_ctx, input: unknown) => input }),
  slow: defineOrchestration("slow", { run: (ctx, ms: number) => ctx.sleep(ms) }),
});

let world: World;
async function open(alwaysReplay = false): Promise<void> {
  const faults = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;
  world = new World({ seed: 1, app, faults, alwaysReplay });
  await world.prepare();
}
const runs = async (name = "quick") =>
  (await world.run(world.client.list({ name, limit: 1000 })))
    .map(({ instanceId, startedAt = 0, input }) => ({ instanceId, startedAt, input }))
    .sort((a, b) => a.instanceId.localeCompare(b.instanceId));
const create = (id: string, spec: ScheduleOptions) => world.run(world.client.schedules.create(id, spec));
const describe = (id: string) => world.run(world.client.schedules.describe(id));
const check = async (id: string) => checkHistory((await world.history(`schedule-${id}`)) ?? []);

const jittered: ScheduleOptions = { orchestration: "quick", every: "10s", jitter: "25s", overlap: "allow" };
const points: FaultPoint[] = ["turn.before_append", "turn.after_append", "effects.half_published"];

test.each([undefined, ...points])(
  "jitter puts every time off by its own, catches none of them up as late, and loses none: %s",
  async (point) => {
    await open(point === undefined);
    const first = await world.orchestrator(point && { point, count: 3 });
    const from = world.clock.now();
    // Put off by more than it catches up; whose owner is dead for a while has to catch up in earnest.
    const spec: ScheduleOptions = { ...jittered, catchUp: point ? "1h" : "5s" };
    await create("a", spec);
    await world.clock.advance(60_000);
    if (point) {
      first.kill();
      await world.orchestrator();
    }
    await world.clock.advance(140_000);
    const schedule = parseSchedule(spec, undefined);
    const due = timesBetween(schedule, from + 1, world.clock.now() - 30_000, 1000);
    const seen = await runs();
    expect(seen.map(({ instanceId }) => instanceId).slice(0, due.length)).toEqual(
      due.map((time) => runId("a", time)),
    );
    for (const [i, time] of due.entries())
      expect(seen[i]?.startedAt).toBeGreaterThanOrEqual(dueAt(schedule, "a", time));
    expect(await describe("a")).toMatchObject({ missed: 0 });
    await check("a");
  },
);

test("changed while nobody was there: what had come due goes by the old one, what comes by the new", async () => {
  await open();
  const first = await world.orchestrator();
  const spec: ScheduleOptions = { orchestration: "quick", input: "old", every: "10s", overlap: "allow" };
  const from = world.clock.now();
  await create("a", spec);
  await world.clock.advance(15_000);
  first.kill();
  await world.clock.advance(30_000);
  await world.run(world.client.schedules.update("a", { ...spec, input: "new" }));
  await world.orchestrator();
  await world.clock.advance(60_000);
  const expected = timesBetween(parseSchedule(spec, undefined), from + 1, world.clock.now(), 1000);
  const seen = await runs();
  expect(seen.map(({ instanceId }) => instanceId)).toEqual(expected.map((time) => runId("a", time)));
  const inputs = seen.map(({ input }) => input);
  expect(inputs.slice(0, 4)).toEqual(["old", "old", "old", "old"]);
  expect(inputs.at(-1)).toBe("new");
  await check("a");
});

test("a change that leaves the times as they are loses none that jitter has put off", async () => {
  await open();
  await world.orchestrator();
  const from = world.clock.now();
  await create("a", { ...jittered, input: 0 });
  for (let i = 1; i <= 12; i++) {
    await world.clock.advance(7000);
    await world.run(world.client.schedules.update("a", { ...jittered, input: i }));
  }
  await world.clock.advance(40_000);
  const due = timesBetween(parseSchedule(jittered, undefined), from + 1, world.clock.now() - 30_000, 1000);
  const seen = (await runs()).map(({ instanceId }) => instanceId);
  expect(seen.slice(0, due.length)).toEqual(due.map((time) => runId("a", time)));
});

test("the next ten times, fewer where it has fewer left, none while it is paused or when all have come", async () => {
  await open();
  await world.orchestrator();
  const slow = { orchestration: "slow", input: 3_600_000, every: "10s", overlap: "buffer-all" } as const;
  await create("endless", slow);
  await create("limited", { ...slow, limit: 4 });
  await world.clock.advance(25_000);
  expect((await describe("endless")).next).toHaveLength(10);
  await world.clock.advance(40_000);
  // One runs and three wait: no time is to come.
  expect(await describe("limited")).toMatchObject({ status: "active", runs: 1, waiting: 3, next: [] });
  await world.run(world.client.schedules.pause("endless", "inventory"));
  await world.clock.advance(1000);
  expect(await describe("endless")).toMatchObject({ status: "paused", note: "inventory", next: [] });
});

test("what is no schedule, and a misspelt option, are refused where they are given", async () => {
  await open();
  const spec = { orchestration: "quick", every: "1h" };
  const { schedules } = world.client;
  for (const attempt of [
    (given: object) => schedules.create("a", given as never),
    (given: object) => schedules.update("a", given as never),
  ]) {
    await expect(world.run(attempt({ ...spec, overlapp: "allow" }))).rejects.toMatchObject({
      code: "invalid_option",
      message: 'the schedule has no option "overlapp"; did you mean "overlap"?',
    });
    await expect(world.run(attempt({ ...spec, cron: "* * * * *" }))).rejects.toMatchObject({
      code: "invalid_schedule",
      message: expect.stringContaining("both cron and every"),
    });
  }
  const note = "x".repeat(4097);
  for (const attempt of [() => schedules.pause("b", note), () => schedules.create("c", spec, { note })]) {
    await world.run(schedules.create("b", spec, { replace: true }));
    await expect(world.run(attempt())).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("pause: note"),
    });
  }
  await expect(world.run(schedules.create("x".repeat(97), spec))).rejects.toMatchObject({
    code: "invalid_option",
  });
  await expect(world.run(schedules.trigger("a", { overlap: "never" as never }))).rejects.toMatchObject({
    message: expect.stringContaining("must be one of skip, buffer-one"),
  });
  await expect(world.run(schedules.backfill("a", { from: 2, to: 1 }))).rejects.toMatchObject({
    code: "invalid_option",
  });
});

test("a list shows the schedules' own instances apart", async () => {
  await open();
  await world.orchestrator();
  await create("a", { orchestration: "quick", every: "10s", limit: 1 });
  await world.clock.advance(15_000);
  const names = async (options: object) =>
    (await world.run(world.client.list(options))).map(({ name }) => name);
  expect(await names({})).toEqual(["quick"]);
  expect(await names({ engine: true })).toEqual(["holdfast-schedule"]);
  expect(await names({ name: "holdfast-schedule" })).toEqual(["holdfast-schedule"]);
  await expect(names({ stauts: "running" })).rejects.toThrow(/"stauts".*status/s);
});
