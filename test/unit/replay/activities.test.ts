import { expect } from "vitest";
import { z } from "zod";
import {
  type ActivityOptions,
  defineActivity,
  defineOrchestration,
} from "../../../shared/definitions/index.ts";
import { nextDeadline } from "../../../shared/replay/index.ts";
import { type Bench, scenario } from "../../support/worlds/instance-bench.ts";
import { began, completed, failed, start, wake } from "../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async (_ctx, input: unknown) => input });

/** Runs one activity and returns what came of it. */
const one = (options: ActivityOptions) => ({
  work,
  one: defineOrchestration("one", {
    async run(ctx, input: unknown) {
      try {
        return { value: await ctx.run(work, input, options) };
      } catch (error) {
        const { name, code, message, details, cause } = error as Record<string, unknown>;
        return { name, code, message, details, cause: (cause as { code?: string } | undefined)?.code };
      }
    },
  }),
});
const app = one({
  retry: { maxAttempts: 4, initialDelay: 100, factor: 3, maxDelay: 500, nonRetryable: ["never"] },
});

scenario(
  "a failed attempt is tried again later; the delay grows to its limit and is recorded",
  app,
  async (bench) => {
    await bench.turn(start("one"));
    const of = bench.task("work");
    for (const [attempt, delay] of [
      [1, 100],
      [2, 300],
      [3, 500],
    ] as const) {
      const { events, effects } = await bench.turn(failed(of, {}, { attempt }));
      expect(events).toMatchObject([
        { kind: "activity.attempt_failed", of, attempt, retryAt: bench.now + delay, error: { code: "oops" } },
      ]);
      expect(effects).toMatchObject([
        { kind: "task", task: { attempt: attempt + 1, readyAt: bench.now + delay } },
      ]);
    }
    await bench.turn(failed(of, { code: "last" }, { attempt: 4 }));
    expect(bench.output).toMatchObject({ name: "ActivityError", code: "last", message: "it went wrong" });
  },
);

scenario("a later attempt may succeed", app, async (bench) => {
  await bench.turn(start("one"));
  const of = bench.task("work");
  await bench.turn(failed(of));
  await bench.turn(completed(of, "at last", { attempt: 2 }));
  expect(bench.output).toEqual({ value: "at last" });
});

scenario("some codes are not tried again", app, async (bench) => {
  await bench.turn(start("one"));
  await bench.turn(failed(bench.task("work"), { code: "never" }));
  expect(bench.output).toMatchObject({ code: "never" });
});

scenario("nor is an error that says so", app, async (bench) => {
  await bench.turn(start("one"));
  await bench.turn(failed(bench.task("work"), { retryable: false, details: { a: 1 } }));
  expect(bench.output).toMatchObject({ code: "oops", details: { a: 1 } });
});

scenario(
  "reports of other attempts, other executions, unknown tasks and repeated ones are late",
  app,
  async (bench) => {
    await bench.turn(start("one"));
    const of = bench.task("work");
    await bench.turn(failed(of));
    const { verdicts } = await bench.turn(
      completed(of, "attempt before", { attempt: 1 }),
      failed(of, {}, { attempt: 1 }),
      completed(of, "attempt to come", { attempt: 3 }),
      completed(of, "other execution", { attempt: 2, execution: 2 }),
      completed(of + 7, "no such task", { attempt: 2 }),
      completed(1, "not a task"),
    );
    expect(verdicts).toEqual(Array(6).fill("late"));
    const both = await bench.turn(
      completed(of, "first", { attempt: 2 }),
      completed(of, "second", { attempt: 2 }),
      failed(of, {}, { attempt: 2 }),
    );
    expect(both.verdicts).toEqual(["facts", "late", "late"]);
    expect(bench.output).toEqual({ value: "first" });
    expect((await bench.turn(completed(of, "third", { attempt: 2 }))).verdicts).toEqual(["ended"]);
  },
);

const givenUp = (id: number) =>
  expect.objectContaining({ kind: "cancel-task", task: expect.objectContaining({ id }) });

const due = async (bench: Bench, at: number) => {
  expect(nextDeadline(bench.state)).toBe(at);
  bench.now = at - 20;
  expect((await bench.turn(wake())).verdicts, "not early").toEqual(["late"]);
  bench.now = at - 10;
  return await bench.turn(wake());
};

scenario("schedule-to-start: nobody came, and nobody will", one({ scheduleToStart: "1s" }), async (bench) => {
  const { effects } = await bench.turn(start("one"));
  const begun = bench.now;
  expect(effects.at(-1)).toEqual({ kind: "schedule", of: 2, at: begun + 1000 });
  const fired = await due(bench, begun + 1000);
  expect(bench.output).toMatchObject({
    name: "TimeoutError",
    code: "timeout",
    details: { timeout: "schedule_to_start", ms: 1000 },
  });
  expect(fired.effects).toContainEqual({ kind: "unschedule", of: 2 });
  expect(fired.effects, "a worker may come and find it").toContainEqual(givenUp(2));
});

scenario(
  "schedule-to-start counts for every attempt, and not once it runs",
  one({ scheduleToStart: "1s" }),
  async (bench) => {
    await bench.turn(start("one"));
    const of = bench.task("work");
    await bench.turn(began(of));
    expect(nextDeadline(bench.state)).toBeUndefined();
    const { effects } = await bench.turn(failed(of));
    expect(effects, "durably, for the next attempt").toContainEqual({
      kind: "schedule",
      of,
      at: bench.now + 1200,
    });
    await due(bench, bench.now + 1200);
    expect(bench.output).toMatchObject({ details: { timeout: "schedule_to_start" }, cause: "oops" });
  },
);

scenario(
  "start-to-close: the engine steps in a second after the worker should have",
  one({ startToClose: "5s" }),
  async (bench) => {
    await bench.turn(start("one"));
    const of = bench.task("work");
    expect(nextDeadline(bench.state), "not before it runs").toBeUndefined();
    const { effects, verdicts } = await bench.turn(began(of), began(of));
    expect(verdicts).toEqual(["facts", "repeated"]);
    expect(effects).toEqual([{ kind: "schedule", of, at: bench.now + 6000 }]);
    const { events } = await due(bench, bench.now + 6000);
    expect(events).toMatchObject([{ kind: "activity.attempt_failed", error: { code: "timeout" } }]);
    await bench.turn(completed(of, "second try", { attempt: 2 }));
    expect(bench.output).toEqual({ value: "second try" });
  },
);

scenario(
  "schedule-to-close covers all attempts",
  one({ scheduleToClose: "10s", scheduleToStart: "2s", retry: { maxAttempts: 99, initialDelay: 0 } }),
  async (bench) => {
    const { effects: first } = await bench.turn(start("one"));
    const begun = bench.now;
    const of = bench.task("work");
    expect(first.at(-1), "the earlier of two").toEqual({ kind: "schedule", of, at: begun + 2000 });
    const { effects } = await bench.turn(began(of));
    expect(effects, "then the later").toEqual([{ kind: "schedule", of, at: begun + 10_000 }]);
    await bench.turn(failed(of));
    await bench.turn(began(of, { attempt: 2 }));
    const { effects: last } = await due(bench, begun + 10_000);
    expect(bench.output).toMatchObject({ details: { timeout: "schedule_to_close" }, cause: "oops" });
    expect(last, "whoever runs it is told").toContainEqual(givenUp(of));
  },
);

scenario(
  "no attempt begins that could not end in time",
  one({ scheduleToClose: 500, retry: { maxAttempts: 5, initialDelay: 1000 } }),
  async (bench) => {
    await bench.turn(start("one"));
    await bench.turn(failed(bench.task("work")));
    expect(bench.output).toMatchObject({ code: "oops" });
  },
);

scenario(
  "a missed heartbeat is the worker's to report, and is tried again",
  one({ heartbeatTimeout: "1s" }),
  async (bench) => {
    const { effects } = await bench.turn(start("one"));
    expect(effects).toContainEqual(expect.objectContaining({ kind: "task" }));
    const of = bench.task("work");
    await bench.turn(failed(of, { code: "timeout", details: { timeout: "heartbeat", ms: 1000 } }));
    await bench.turn(completed(of, "back", { attempt: 2 }));
    expect(bench.output).toEqual({ value: "back" });
  },
);

scenario(
  "start-to-close of the last attempt, judged by the engine: a worker that is still at it is told",
  one({ startToClose: "5s", retry: { maxAttempts: 1 } }),
  async (bench) => {
    await bench.turn(start("one"));
    const of = bench.task("work");
    await bench.turn(began(of));
    const { effects } = await due(bench, bench.now + 6000);
    expect(effects).toContainEqual(givenUp(of));
  },
);

scenario(
  "what a worker reports it has ended itself: it is told nothing",
  one({ startToClose: "5s", scheduleToClose: "1m", retry: { maxAttempts: 1 } }),
  async (bench) => {
    await bench.turn(start("one"));
    const of = bench.task("work");
    await bench.turn(began(of));
    const { effects } = await bench.turn(
      failed(of, { code: "timeout", details: { timeout: "start_to_close" } }),
    );
    expect(effects).not.toContainEqual(givenUp(of));
    expect(bench.output).toMatchObject({ code: "timeout" });
  },
);

const typed = defineActivity("typed", {
  input: z.object({ n: z.number() }),
  output: z.string().transform((text) => text.toUpperCase()),
  run: async (_ctx, { n }) => String(n),
});
const checked = defineOrchestration("checked", {
  async run(ctx, input: { n: number }) {
    return await ctx.run(typed, input).catch((error) => error.message);
  },
});

scenario("input is checked before it leaves", { typed, checked }, async (bench) => {
  await bench.turn(start("checked", { n: "one" }));
  expect(bench.output).toMatch(/^input of "typed": n: /);
  expect(bench.kinds).not.toContain("activity.scheduled");
});

scenario("output is checked, and transformed, when it arrives", { typed, checked }, async (bench) => {
  await bench.turn(start("checked", { n: 1 }));
  await bench.turn(completed(bench.task("typed"), "one"));
  expect(bench.output).toBe("ONE");
});

scenario("output of the wrong kind fails the call, not the engine", { typed, checked }, async (bench) => {
  await bench.turn(start("checked", { n: 1 }));
  await bench.turn(completed(bench.task("typed"), 1));
  expect(bench.output).toMatch(/^output of "typed": /);
});

const badOptions = defineOrchestration("bad-options", {
  async run(ctx) {
    const tries = [
      () => ctx.run(work, 0, { retry: { maxAttempts: 0 } }),
      () => ctx.run(work, 0, { startToClose: "soon" as never }),
      () => ctx.run(work, 0, { scheduleToStart: 0 }),
      () => ctx.run(work, 1n),
      () => ctx.sleep("later" as never),
    ];
    const codes: string[] = [];
    for (const attempt of tries) await attempt().catch((error) => codes.push(error.code));
    return codes;
  },
});

scenario("bad options are refused by name and issue nothing", { work, badOptions }, async (bench) => {
  await bench.turn(start("bad-options"));
  expect(bench.output).toEqual([
    "invalid_option",
    "invalid_duration",
    "invalid_option",
    "not_serialisable",
    "invalid_duration",
  ]);
  expect(bench.kinds).toEqual(["instance.started", "instance.completed"]);
});
