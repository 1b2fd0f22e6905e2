import { expect } from "vitest";
import { defineActivity, defineOrchestration } from "../../../../shared/definitions/index.ts";
import { scenario } from "../../../support/worlds/instance-bench.ts";
import {
  cancel,
  completed,
  json,
  signal,
  start,
  terminate,
} from "../../../support/worlds/instance-messages.ts";

const step = defineActivity("step", { run: async () => "done" });
const listens = defineOrchestration("listens", {
  async run(ctx, { names }: { names: string[] }) {
    const heard: unknown[] = [];
    for (const name of names) heard.push(await ctx.waitForSignal(name));
    return heard;
  },
});
const app = { step, listens };
const go3 = { names: ["go", "go", "go"] };

scenario("a signal wakes whoever waits for it", app, async (bench) => {
  await bench.turn(start("listens", { names: ["go"] }));
  expect(bench.state.status).toBe("running");
  await bench.turn(signal("go", { x: 1 }));
  expect(bench.output).toEqual([{ x: 1 }]);
});

scenario("signals of one name are read in their order, of others never", app, async (bench) => {
  await bench.turn(start("listens", go3));
  await bench.turn(signal("stop", 0), signal("go", 1), signal("go", 2));
  await bench.turn(signal("go", 3));
  expect(bench.output).toEqual([1, 2, 3]);
});

scenario("what nobody waits for is kept", app, async (bench) => {
  await bench.turn(start("listens", { names: ["b", "a"] }));
  await bench.turn(signal("a", 1));
  await bench.turn(signal("b", 2));
  expect(bench.output).toEqual([2, 1]);
});

scenario("signals before the start wait for it", app, async (bench) => {
  const early = await bench.turn(signal("go", 1));
  expect(bench.state).toMatchObject({ status: "pending", execution: 0 });
  expect(early.effects).toEqual([{ kind: "summary" }]);
  await bench.turn(signal("go", 2));
  await bench.turn(start("listens", go3), signal("go", 3));
  expect(bench.output).toEqual([1, 2, 3]);
  expect(bench.state.execution).toBe(1);
});

scenario("signals in the same turn as the start, on both sides of it", app, async (bench) => {
  await bench.turn(signal("go", 1), start("listens", go3), signal("go", 2), signal("go", 3));
  expect(bench.output).toEqual([1, 2, 3]);
});

scenario("only signals can come before the start", app, async (bench) => {
  await bench.turn(signal("go", 1));
  const { verdicts } = await bench.turn(cancel(), terminate(), completed(1));
  expect(verdicts).toEqual(["unknown", "unknown", "late"]);
});

scenario("a signal after the end is answered so", app, async (bench) => {
  await bench.turn(start("listens", { names: [] }));
  const { verdicts } = await bench.turn(
    signal("go", 1),
    cancel(),
    terminate(),
    start("listens", { names: [] }),
  );
  expect(verdicts).toEqual(["ended", "ended", "ended", "repeated"]);
  expect(bench.commits).toHaveLength(1);
});

scenario("starting twice is starting once", app, async (bench) => {
  const { verdicts } = await bench.turn(start("listens", go3), start("listens", { names: [] }));
  expect(verdicts).toEqual(["facts", "repeated"]);
  await bench.turn(start("listens", { names: [] }));
  expect(bench.kinds).toEqual(["instance.started"]);
});

const late = defineOrchestration("late", {
  async run(ctx) {
    await ctx.run(step, 0);
    return [await ctx.waitForSignal("go"), await ctx.waitForSignal("go")];
  },
});

scenario("signals are kept while the code is busy", { step, late }, async (bench) => {
  await bench.turn(start("late"));
  await bench.turn(signal("go", 1), completed(bench.task("step")), signal("go", 2));
  expect(bench.output).toEqual([1, 2]);
});

scenario("a signal without payload is undefined", app, async (bench) => {
  await bench.turn(start("listens", { names: ["go"] }));
  await bench.turn({ kind: "signal", name: "go", payload: json(undefined) });
  expect(bench.state.status).toBe("completed");
});
