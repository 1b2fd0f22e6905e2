import { expect } from "vitest";
import { defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { scenario } from "../../support/worlds/instance-bench.ts";
import { completed, failed, start, wake } from "../../support/worlds/instance-messages.ts";

const add = defineActivity("add", { run: async (_ctx, { a, b }: { a: number; b: number }) => a + b });

const sum = defineOrchestration("sum", {
  async run(ctx, input: { n: number }) {
    let total = 0;
    for (let i = 1; i <= input.n; i++) total = await ctx.run(add, { a: total, b: i });
    return total;
  },
});

scenario("a sequence runs one activity after the other", { add, sum }, async (bench) => {
  const first = await bench.turn(start("sum", { n: 3 }));
  expect(first.events.map((event) => event.kind)).toEqual(["instance.started", "activity.scheduled"]);
  expect(first.effects.map((effect) => effect.kind)).toEqual(["summary", "task"]);
  for (const output of [1, 3, 6]) await bench.turn(completed(bench.task("add"), output));
  expect(bench.state.status).toBe("completed");
  expect(bench.output).toBe(6);
});

const fanOut = defineOrchestration("fan-out", {
  async run(ctx, { n }: { n: number }) {
    const parts = Array.from({ length: n }, (_, i) => ctx.run(add, { a: i, b: 0 }));
    return (await Promise.all(parts)).reduce((total, part) => total + part, 0);
  },
});

scenario("parallel results may come in any order and in one turn", { add, fanOut }, async (bench) => {
  const first = await bench.turn(start("fan-out", { n: 5 }));
  expect(first.effects.filter((effect) => effect.kind === "task")).toHaveLength(5);
  const [a, b, c, d, e] = bench.open("add") as [number, number, number, number, number];
  await bench.turn(completed(e, 4));
  await bench.turn(completed(a, 0), completed(d, 3), completed(b, 1));
  expect(bench.state.status).toBe("running");
  await bench.turn(completed(c, 2));
  expect(bench.output).toBe(10);
});

const chains = defineOrchestration("chains", {
  async run(ctx) {
    const chain = async (name: string) => {
      const first = await ctx.run(add, { a: 1, b: 1 });
      await ctx.sleep(name === "left" ? 100 : 50);
      return `${name} ${await ctx.run(add, { a: first, b: 1 })}`;
    };
    return await Promise.all([chain("left"), chain("right")]);
  },
});

scenario("two chains advance by themselves, each in its own time", { add, chains }, async (bench) => {
  await bench.turn(start("chains"));
  const [left, right] = bench.open("add") as [number, number];
  await bench.turn(completed(right, 20));
  await bench.turn(completed(left, 10));
  bench.advance(60);
  await bench.turn(wake());
  const second = bench.task("add");
  bench.advance(60);
  await bench.turn(completed(second, 21), wake());
  await bench.turn(completed(bench.task("add"), 11));
  expect(bench.output).toEqual(["left 11", "right 21"]);
});

const settled = defineOrchestration("settled", {
  async run(ctx) {
    const results = await Promise.allSettled([
      ctx.run(add, { a: 1, b: 1 }),
      ctx.run(add, { a: 2, b: 2 }, { retry: { maxAttempts: 1 } }),
    ]);
    return results.map((result) => (result.status === "fulfilled" ? result.value : result.reason.code));
  },
});

scenario("allSettled waits for all and cancels nothing", { add, settled }, async (bench) => {
  await bench.turn(start("settled"));
  const [a, b] = bench.open("add") as [number, number];
  await bench.turn(failed(b, { code: "broken" }));
  expect(bench.state.status).toBe("running");
  await bench.turn(completed(a, 2));
  expect(bench.output).toEqual([2, "broken"]);
  expect(bench.kinds).not.toContain("activity.cancelled");
});

const unawaited = defineOrchestration("unawaited", {
  async run(ctx) {
    ctx.run(add, { a: 1, b: 1 }); // its result is not awaited
    return "done";
  },
});

scenario("what nobody awaits is let go of at the end", { add, unawaited }, async (bench) => {
  const { effects } = await bench.turn(start("unawaited"));
  expect(bench.output).toBe("done");
  expect(effects.map((effect) => effect.kind)).toEqual(["summary", "task", "cancel-task", "summary"]);
});
