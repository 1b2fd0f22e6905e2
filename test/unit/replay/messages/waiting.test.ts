/** Signals one after the other, conditions, work that is bounded in time, and what is undone when a step fails. */
import { expect, test } from "vitest";
import { defineActivity, defineOrchestration } from "../../../../shared/definitions/index.ts";
import { isCancelled } from "../../../../shared/errors/index.ts";
import { Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import {
  cancel,
  completed,
  failed,
  signal,
  start,
  update,
  wake,
} from "../../../support/worlds/instance-messages.ts";

const quick = defineActivity("quick", { run: () => null, retry: { maxAttempts: 1 } });
const undo = defineActivity("undo", { run: () => null, retry: { maxAttempts: 1 } });
const codeOf = (error: unknown) =>
  error instanceof Error ? ("code" in error ? error.code : error.name) : "nothing";

scenario(
  "for await takes signals in order of arrival, before and while it waits",
  {
    sum: defineOrchestration("sum", {
      run: async (ctx) => {
        const seen: number[] = [];
        for await (const n of ctx.signals<number>("n")) {
          if (n < 0) break;
          seen.push(n);
        }
        return [seen, await ctx.waitForSignal("n")];
      },
    }),
  },
  async (bench) => {
    await bench.turn(signal("n", 1), start("sum"), signal("n", 2));
    await bench.turn(signal("n", 3), signal("n", -1), signal("n", 9));
    expect(bench.output).toEqual([[1, 2, 3], 9]);
  },
);

scenario(
  "a time that is none rejects where it is awaited",
  {
    hasty: defineOrchestration("hasty", {
      run: (ctx) =>
        Promise.all([
          ctx.timeout("soon" as "1s", async () => "done").catch(codeOf),
          ctx.until(() => false, { timeout: -1 }).catch(codeOf),
          ctx.waitForSignal("n", { timeout: Number.NaN }).catch(codeOf),
        ]),
    }),
  },
  async (bench) => {
    await bench.turn(start("hasty"));
    expect(bench.output).toEqual(["invalid_duration", "invalid_duration", "invalid_duration"]);
  },
);

test("10 000 signals in a burst are applied in order, and replay the same", async () => {
  const all = defineOrchestration("all", {
    run: async (ctx) => {
      let expected = 0;
      for await (const n of ctx.signals<number>("n")) {
        if (n !== expected++) return `got ${n}`;
        if (n === 9_999) break;
      }
      return expected;
    },
  });
  const bench = new Bench({ all }, "live", { unchecked: true });
  await bench.turn(start("all"));
  const numbers = Array.from({ length: 9_999 }, (_, n) => signal("n", n));
  for (let at = 0; at < numbers.length; at += 256) await bench.turn(...numbers.slice(at, at + 256));
  await bench.reload();
  await bench.turn(signal("n", 9_999));
  expect(bench.output).toBe(10_000);
});

scenario(
  "what is there is drained before continue-as-new, and what comes behind it is carried",
  {
    drains: defineOrchestration("drains", {
      run: async (ctx, before: unknown[]) => {
        if (ctx.execution === 2) return [before, await ctx.waitForSignal("n")];
        await ctx.waitForSignal("go");
        ctx.continueAsNew(ctx.signals("n").drain());
      },
    }),
  },
  async (bench) => {
    await bench.turn(start("drains", []), signal("n", 1), signal("n", 2));
    await bench.turn(signal("go"), signal("n", 3));
    expect(bench.output).toEqual([[1, 2], 3]);
  },
);

scenario(
  "a signal that does not come in time is a TimeoutError; one that comes takes the timer away",
  {
    waits: defineOrchestration("waits", {
      run: async (ctx) => {
        const first = await ctx.waitForSignal("a", { timeout: "1m" });
        const second = await ctx.waitForSignal("b", { timeout: 1000 }).catch(codeOf);
        return [first, second, await ctx.waitForSignal("b")];
      },
    }),
  },
  async (bench) => {
    await bench.turn(start("waits"));
    await bench.turn(signal("a", 1));
    expect(bench.kinds).toContain("timer.cancelled");
    bench.advance(2000);
    await bench.turn(wake());
    await bench.turn(signal("b", "late"));
    expect(bench.output).toEqual([1, "timeout", "late"]);
  },
);

const ready = defineOrchestration("ready", {
  run: async (ctx) => {
    let count = 0;
    ctx.onUpdate("count", (n) => {
      count += Number(n);
      return count;
    });
    await ctx.until(() => true, { timeout: "1s" });
    await ctx.until(() => count >= 2);
    const inTime = await ctx.until(() => count >= 5, { timeout: "10s" }).then(() => "in time", codeOf);
    return [count, inTime];
  },
});

scenario("until is looked at after everything that happens", { ready }, async (bench) => {
  await bench.turn(start("ready"));
  expect(bench.kinds, "what is so already costs no timer").not.toContain("timer.created");
  await bench.turn(update("count", 1, "a"));
  expect(bench.state.status).toBe("running");
  await bench.turn(update("count", 1, "b"));
  await bench.turn(update("count", 3, "c"));
  expect(bench.output).toEqual([5, "in time"]);
  expect(bench.kinds.filter((kind) => kind === "timer.cancelled")).toHaveLength(1);
});

scenario("until gives up in time", { ready }, async (bench) => {
  await bench.turn(start("ready"), update("count", 2, "a"));
  bench.advance(11_000);
  await bench.turn(wake());
  expect(bench.output).toEqual([2, "timeout"]);
});

scenario("until is cancelled with its instance", { ready }, async (bench) => {
  await bench.turn(start("ready"));
  await bench.turn(cancel("enough"));
  expect(bench.state.status).toBe("cancelled");
});

scenario(
  "a condition that throws, awaits or changes something rejects, and nothing else",
  {
    bad: defineOrchestration("bad", {
      run: async (ctx) => [
        await ctx
          .until(() => {
            throw new RangeError("no");
          })
          .catch(codeOf),
        await ctx.until(async () => true).catch(codeOf),
        await ctx.until(() => ctx.setStatus("x")).catch(codeOf),
      ],
    }),
  },
  async (bench) => {
    await bench.turn(start("bad"));
    expect(bench.output).toEqual(["RangeError", "condition_broken", "condition_broken"]);
  },
);

scenario(
  "timeout cancels what it bounds, and nothing beside it",
  {
    bounded: defineOrchestration("bounded", {
      run: async (ctx) => {
        const beside = ctx.run(quick, "beside");
        let cleaned = false;
        const late = await ctx
          .timeout("5s", async (inner) => {
            try {
              return await inner.run(quick, "bounded");
            } catch (error) {
              cleaned = isCancelled(error);
              throw error;
            }
          })
          .catch(codeOf);
        const done = await ctx.timeout("5s", async () => 7);
        return [late, cleaned, done, await beside];
      },
    }),
    quick,
  },
  async (bench) => {
    await bench.turn(start("bounded"));
    bench.advance(6000);
    await bench.turn(wake());
    expect(bench.kinds.filter((kind) => kind === "activity.cancelled")).toHaveLength(1);
    await bench.turn(completed(bench.task("quick"), "kept"));
    expect(bench.output).toEqual(["timeout", true, 7, "kept"]);
  },
);

const trip = defineOrchestration("trip", {
  run: (ctx) =>
    ctx.saga(async (saga) => {
      saga.compensate((inner) => inner.run(undo, "before"));
      await saga.step(
        (inner) => inner.run(quick, "hotel"),
        (inner, done) => inner.run(undo, done),
      );
      await saga.step(
        (inner) => inner.run(quick, "flight"),
        (inner, done) => inner.run(undo, done),
      );
      return ctx.run(quick, "pay");
    }),
});
const undone = (bench: Bench) =>
  bench.events.flatMap((event) =>
    event.kind === "activity.scheduled" && event.name === "undo" && "json" in event.input
      ? [event.input.json]
      : [],
  );

scenario(
  "a saga undoes what was done in reverse, one after the other, and fails with the cause",
  { trip, quick, undo },
  async (bench) => {
    await bench.turn(start("trip"));
    for (const word of ["h-1", "f-1"]) await bench.turn(completed(bench.task("quick"), word));
    await bench.turn(failed(bench.task("quick"), { code: "no_money", retryable: false }));
    expect(undone(bench)).toEqual(["f-1"]);
    await bench.turn(completed(bench.task("undo"), null));
    await bench.turn(failed(bench.task("undo"), { code: "hotel_gone", retryable: false }));
    await bench.turn(completed(bench.task("undo"), null));
    expect(undone(bench)).toEqual(["f-1", "h-1", "before"]);
    expect(bench.state.error).toMatchObject({
      code: "compensation_failed",
      details: { failures: [{ code: "hotel_gone" }], cause: { code: "no_money" } },
    });
  },
);

scenario("a cancelled saga undoes too", { trip, quick, undo }, async (bench) => {
  await bench.turn(start("trip"));
  await bench.turn(completed(bench.task("quick"), "h-1"));
  await bench.turn(cancel());
  await bench.turn(completed(bench.task("undo"), null));
  await bench.turn(completed(bench.task("undo"), null));
  expect(undone(bench)).toEqual(["h-1", "before"]);
  expect(bench.state.status).toBe("cancelled");
});

scenario("a saga that goes well undoes nothing", { trip, quick, undo }, async (bench) => {
  await bench.turn(start("trip"));
  for (let i = 0; i < 3; i++) await bench.turn(completed(bench.task("quick"), i));
  expect(bench.output).toBe(2);
  expect(undone(bench)).toEqual([]);
});
