/** `ctx.local`: what is recorded, and what a message means. The running itself is in test/simulation. */
import { expect } from "vitest";
import { z } from "zod";
import { defineActivity, defineOrchestration, type LocalOptions } from "../../../shared/definitions/index.ts";
import { scenario } from "../../support/worlds/instance-bench.ts";
import { cancel, completed, failed, start } from "../../support/worlds/instance-messages.ts";

const work = defineActivity("work", {
  queue: "far-away",
  heartbeatTimeout: "1s",
  input: z.number(),
  output: z.string(),
  run: (_ctx, n) => String(n),
});

const one = (options: LocalOptions = {}) => ({
  work,
  one: defineOrchestration("one", {
    async run(ctx, input: number) {
      try {
        return { value: await ctx.local(work, input, options) };
      } catch (error) {
        const { name, code, message } = error as Record<string, unknown>;
        return { name, code, message };
      }
    },
  }),
});

scenario("a local activity is recorded as one and handed to no queue", one(), async (bench) => {
  const { events, effects } = await bench.turn(start("one", 1));
  expect(events).toMatchObject([
    { kind: "instance.started" },
    {
      kind: "activity.scheduled",
      name: "work",
      target: { kind: "local" },
      timeouts: { startToCloseMs: 10_000 },
      retry: { maxAttempts: 3 },
    },
  ]);
  expect(effects.map(({ kind }) => kind)).toEqual(["summary", "local"]);
  const turn = await bench.turn(completed(bench.task("work"), "1", { worker: "orchestrator-1" }));
  expect(turn.events.map(({ kind }) => kind)).toEqual(["activity.completed", "instance.completed"]);
  expect(bench.output).toEqual({ value: "1" });
});

scenario(
  "a failed attempt waits for its time behind a schedule, and the last one reaches the code",
  one({ retry: { maxAttempts: 2, initialDelay: 700 } }),
  async (bench) => {
    await bench.turn(start("one", 1));
    const of = bench.task("work");
    const { effects } = await bench.turn(failed(of));
    expect(effects).toEqual([{ kind: "schedule", of, at: bench.now + 700 }]);
    expect((await bench.turn(completed(of, "late"))).verdicts).toEqual(["late"]);
    const last = await bench.turn(failed(of, { code: "broken" }, { attempt: 2 }));
    expect(last.effects[0]).toEqual({ kind: "forget-local", of });
    expect(bench.output).toMatchObject({ name: "ActivityError", code: "broken" });
  },
);

scenario("a result that comes twice counts once", one(), async (bench) => {
  await bench.turn(start("one", 1));
  const of = bench.task("work");
  const { verdicts } = await bench.turn(completed(of, "1"), completed(of, "2"));
  expect(verdicts).toEqual(["facts", "late"]);
  expect(bench.output).toEqual({ value: "1" });
});

scenario("a result that comes after the end changes nothing", one(), async (bench) => {
  await bench.turn(start("one", 1));
  const of = bench.task("work");
  await bench.turn(cancel("enough"));
  expect(bench.events.at(-2)).toMatchObject({ kind: "activity.cancelled", of });
  expect((await bench.turn(completed(of, "1"))).verdicts).toEqual(["ended"]);
});

scenario("what does not fit is the code's error", one(), async (bench) => {
  await bench.turn(start("one", "no number"));
  expect(bench.output).toMatchObject({ code: "invalid_input" });
});

scenario("options of workers are refused by name", one({ queue: "x" } as LocalOptions), async (bench) => {
  await bench.turn(start("one", 1));
  expect(bench.output).toMatchObject({
    code: "invalid_option",
    message:
      'ctx.local has no option "queue": it knows retry, startToClose, scheduleToClose; use ctx.run for a worker',
  });
});

scenario("a time limit of nothing is refused", one({ startToClose: 0 }), async (bench) => {
  await bench.turn(start("one", 1));
  expect(bench.output).toMatchObject({ code: "invalid_option" });
});
