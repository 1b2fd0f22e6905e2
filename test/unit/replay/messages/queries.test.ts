/** Q1: a query never writes and cannot wait; its errors reach the caller alone. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineActivity, defineOrchestration, defineQuery } from "../../../../shared/definitions/index.ts";
import { Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import { completed, signal, start } from "../../../support/worlds/instance-messages.ts";

const quick = defineActivity("quick", { run: () => null });
const progress = defineQuery("progress", {
  input: z.object({ of: z.number() }).optional(),
  output: z.object({ done: z.number() }),
});

const worker = defineOrchestration("worker", {
  run: async (ctx) => {
    let done = 0;
    ctx.onQuery(progress, () => ({ done }));
    ctx.onQuery("clock", () => [ctx.now(), Date.now()]);
    for (let i = 0; i < 2; i++) {
      await ctx.run(quick, null);
      done++;
    }
    await ctx.waitForSignal("go");
    return done;
  },
});

scenario(
  "is answered from the code as it stands after each turn, live or replayed",
  { worker, quick },
  async (bench) => {
    await bench.turn(start("worker"));
    expect(await bench.query("progress")).toEqual({ done: 0 });
    await bench.turn(completed(bench.task("quick"), 1));
    expect(await bench.query("progress")).toEqual({ done: 1 });
    await bench.turn(completed(bench.task("quick"), 2));
    const before = structuredClone(bench.commits);
    for (let i = 0; i < 5; i++) expect(await bench.query("progress", { of: 2 })).toEqual({ done: 2 });
    expect(bench.commits).toEqual(before);
    await bench.turn(signal("go"));
    expect(bench.output).toBe(2);
  },
);

scenario(
  "is answered after a terminate that came in one turn with what the code never saw",
  { worker, quick },
  async (bench) => {
    await bench.turn(start("worker"));
    await bench.turn(completed(bench.task("quick"), 1), { kind: "terminate" });
    expect(bench.state.status).toBe("terminated");
    expect(await bench.query("progress")).toEqual({ done: 0 });
  },
);

scenario("says of code that never ran that it answers nothing", { worker, quick }, async (bench) => {
  await bench.turn(start("worker"), { kind: "terminate" });
  expect(bench.state.status).toBe("terminated");
  await expect(bench.query("progress")).rejects.toMatchObject({ code: "unknown_query" });
});

scenario("sees the time of the last turn", { worker, quick }, async (bench) => {
  await bench.turn(start("worker"));
  const { at } = bench.commits.at(-1) ?? { at: 0 };
  bench.advance(5000);
  expect(await bench.query("clock")).toEqual([at, at]);
});

scenario(
  "is answered after the end by running the code over its history",
  { worker, quick },
  async (bench) => {
    await bench.turn(start("worker"));
    await bench.turn(completed(bench.task("quick"), 1));
    await bench.turn(completed(bench.task("quick"), 2), signal("go"));
    expect(bench.state.status).toBe("completed");
    expect(await bench.query("progress")).toEqual({ done: 2 });
  },
);

scenario(
  "is registered anew by the next execution",
  {
    again: defineOrchestration("again", {
      run: async (ctx, n: number) => {
        ctx.onQuery("which", () => n);
        await ctx.waitForSignal("next");
        ctx.continueAsNew(n + 1);
      },
    }),
  },
  async (bench) => {
    await bench.turn(start("again", 1));
    expect(await bench.query("which")).toBe(1);
    await bench.turn(signal("next"));
    expect(await bench.query("which")).toBe(2);
  },
);

describe("bad input", () => {
  const bad = defineOrchestration("bad", {
    run: async (ctx) => {
      let count = 0;
      const list = [1, 2];
      ctx.onQuery("fine", () => count);
      ctx.onQuery("awaits", async () => count);
      ctx.onQuery("awaits-activity", async () => ctx.run(quick, null));
      ctx.onQuery("throws", () => {
        throw new TypeError("no such thing");
      });
      ctx.onQuery("schedules", () => ctx.sleep(10));
      ctx.onQuery("takes-signal", () => ctx.waitForSignal("go"));
      ctx.onQuery("sets-status", () => ctx.setStatus("asked"));
      ctx.onQuery("swallows", () => {
        try {
          ctx.setStatus("asked");
        } catch {
          return "nothing happened";
        }
        return "it did";
      });
      ctx.onQuery("registers", () => ctx.onQuery("more", () => 1));
      ctx.onQuery("counts", () => ++count);
      ctx.onQuery("eats", () => list.pop());
      ctx.onQuery("random", () => Math.random());
      ctx.onQuery("timer", () => setTimeout(() => undefined, 1));
      ctx.onQuery("function", () => ({ deep: [() => 1] }));
      ctx.onQuery(defineQuery("typed", { output: z.number() }), () => "x" as never);
      ctx.onQuery(progress, () => ({ done: count }));
      await ctx.waitForSignal("go");
      await ctx.run(quick, null);
      return [count, list];
    },
  });

  test.each([
    ["awaits", "query_awaits"],
    ["awaits-activity", "query_changes_state"],
    ["throws", "query_failed"],
    ["schedules", "query_changes_state"],
    ["takes-signal", "query_changes_state"],
    ["sets-status", "query_changes_state"],
    ["swallows", "query_changes_state"],
    ["registers", "query_changes_state"],
    ["counts", "query_changes_state"],
    ["eats", "query_changes_state"],
    ["random", "query_changes_state"],
    ["timer", "query_changes_state"],
    ["function", "not_serialisable"],
    ["typed", "invalid_output"],
    ["nope", "unknown_query"],
  ])("%s: %s to whoever asks, the instance unharmed", async (name, code) => {
    const bench = new Bench({ bad, quick });
    await bench.turn(start("bad"));
    const before = structuredClone(bench.commits);
    await expect(bench.query(name)).rejects.toMatchObject({ code });
    expect(bench.commits).toEqual(before);
    expect(await bench.query("fine")).toBe(0);
    await bench.turn(signal("go"));
    await bench.turn(completed(bench.task("quick"), 1));
    expect(bench.fault).toBeUndefined();
    expect(bench.output).toEqual([0, [1, 2]]);
  });

  test("an unknown name is answered with the names there are", async () => {
    const bench = new Bench({ worker, quick });
    await bench.turn(start("worker"));
    await expect(bench.query("nope")).rejects.toMatchObject({
      code: "unknown_query",
      message: 'instance i1 answers no query "nope"; there are: clock, progress',
      details: { names: ["clock", "progress"] },
    });
  });

  test("an input that does not fit names its path", async () => {
    const bench = new Bench({ worker, quick });
    await bench.turn(start("worker"));
    await expect(bench.query("progress", { of: "x" })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("of:"),
    });
  });

  test("what was never started and what is parked are told apart", async () => {
    const bench = new Bench({ worker, quick });
    await expect(bench.query("progress")).rejects.toMatchObject({ code: "instance_not_found" });
    await bench.turn(start("worker"));
    await bench.deploy({
      quick,
      worker: defineOrchestration("worker", { run: (ctx) => ctx.sleep(1) }),
    });
    await expect(bench.query("progress")).rejects.toMatchObject({ code: "instance_parked" });
  });

  test("a query that goes on after it was answered does nothing to the instance", async () => {
    const late = defineOrchestration("late", {
      run: async (ctx) => {
        let count = 0;
        ctx.onQuery("late", async () => {
          await Promise.resolve();
          count++;
          await ctx.run(quick, null);
        });
        await ctx.waitForSignal("go");
        return count;
      },
    });
    const bench = new Bench({ late, quick });
    await bench.turn(start("late"));
    await expect(bench.query("late")).rejects.toMatchObject({ code: "query_awaits" });
    await bench.turn(signal("go"));
    expect(bench.fault).toBeUndefined();
    expect(bench.output).toBe(0);
  });
});
