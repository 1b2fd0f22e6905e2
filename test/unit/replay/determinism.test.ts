import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import {
  defineActivity,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { Bench, scenario } from "../../support/worlds/instance-bench.ts";
import { completed, signal, start, wake } from "../../support/worlds/instance-messages.ts";

const step = defineActivity("step", { run: async () => 0 });
const flow = (run: (ctx: OrchestrationContext) => Promise<unknown>) => ({
  step,
  flow: defineOrchestration("flow", { run }),
});

const sources = (ctx: OrchestrationContext) => ({
  now: [ctx.now(), Date.now(), Date.parse(new Date().toISOString()), performance.now()],
  text: Date() === new Date(ctx.now()).toString(),
  random: [ctx.random(), Math.random(), ...crypto.getRandomValues(new Uint32Array(2))],
  uuid: [ctx.uuid(), crypto.randomUUID(), randomUUID()],
});

const looks = flow(async (ctx) => {
  const before = sources(ctx);
  await ctx.run(step, before);
  return [before, sources(ctx)];
});

scenario("time and randomness belong to the turn and are the same on replay", looks, async (bench) => {
  await bench.turn(start("flow"));
  const begun = bench.now;
  bench.advance(1234);
  await bench.turn(completed(bench.task("step")));
  const [before, after] = bench.output as [ReturnType<typeof sources>, ReturnType<typeof sources>];
  expect(before.now).toEqual(Array(4).fill(begun));
  expect(after.now).toEqual(Array(4).fill(bench.now));
  const all = [...before.random, ...after.random, ...before.uuid, ...after.uuid];
  expect(new Set(all).size, "all different").toBe(14);
  expect(after.text).toBe(true);
});

test("two instances, and two executions, see different randomness", async () => {
  const outputs = await Promise.all(
    ["a", "b"].map(async (instanceId) => {
      const bench = new Bench(
        flow(async (ctx) => ctx.uuid()),
        "live",
        { instanceId },
      );
      await bench.turn(start("flow"));
      return bench.output;
    }),
  );
  expect(outputs[0]).not.toBe(outputs[1]);
});

test("outside of a turn the real things are as they were", async () => {
  const bench = new Bench(looks);
  await bench.turn(start("flow"));
  expect(Date.now()).toBeGreaterThan(bench.now);
  expect(new Date(2020, 1)).toBeInstanceOf(Date);
  expect(Math.random()).not.toBe(Math.random());
  expect(performance.now()).toBeLessThan(Date.now());
  expect(randomUUID()).not.toBe(randomUUID());
  await new Promise((resolve) => setTimeout(resolve, 1));
});

let ran = 0;
const effects = flow(async (ctx) => {
  const value = ctx.sideEffect(() => ++ran);
  // Whatever a side effect uses up, replay does not use it up again.
  const drawn = ctx.sideEffect(() => [Math.random(), ctx.random(), crypto.randomUUID(), Date.now()]);
  const random = ctx.random();
  await ctx.run(step, 0);
  return { value, drawn, same: random, next: ctx.random() };
});

test("a side effect runs once; its value is recorded and what follows is the same", async () => {
  ran = 0;
  const bench = new Bench(effects);
  await bench.turn(start("flow"));
  expect(bench.kinds).toEqual([
    "instance.started",
    "side_effect.recorded",
    "side_effect.recorded",
    "activity.scheduled",
  ]);
  const copy = new Bench(effects);
  copy.commits.push(...bench.commits);
  copy.now = bench.now;
  await copy.reload();
  await bench.turn(completed(4));
  await copy.turn(completed(4));
  expect(ran).toBe(1);
  expect(copy.output).toEqual(bench.output);
  const { drawn } = bench.output as { drawn: [number, number, string, number] };
  expect(drawn[3], "the real clock").toBeGreaterThan(bench.now);
});

const strangeValues = flow(async (ctx) => {
  const values = [
    ctx.sideEffect(() => Number.NaN),
    ctx.sideEffect(() => undefined),
    ctx.sideEffect(() => new Date(0)),
    ctx.sideEffect(() => ({ a: undefined, b: -0 })),
    ctx.sideEffect(() => null),
  ];
  const told = values.map((value) => `${typeof value} ${JSON.stringify(value)}`);
  await ctx.run(step, told);
  return told;
});

scenario("a recorded value is at once what it will be on replay", strangeValues, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(completed(bench.task("step")));
  expect(bench.output).toEqual([
    "object null",
    "undefined undefined",
    'string "1970-01-01T00:00:00.000Z"',
    'object {"b":0}',
    "object null",
  ]);
});

const mutates = flow(async (ctx) => {
  const list = [1];
  const running = ctx.run(step, list);
  list.push(2);
  await running;
  return list;
});

scenario("what was handed over does not change afterwards", mutates, async (bench) => {
  const { effects: asked } = await bench.turn(start("flow"));
  expect(asked).toContainEqual(
    expect.objectContaining({ task: expect.objectContaining({ input: { json: [1] } }) }),
  );
  await bench.turn(completed(bench.task("step")));
  expect(bench.output).toEqual([1, 2]);
});

const badEffects = flow(async (ctx) => {
  const codes: string[] = [];
  for (const bad of [
    async () => 1,
    () => 1n,
    () => {
      throw new Error("mine");
    },
  ])
    try {
      ctx.sideEffect<unknown>(bad);
    } catch (error) {
      codes.push((error as { code?: string }).code ?? (error as Error).message);
    }
  return codes;
});

scenario(
  "a side effect that awaits, fails or cannot be written records nothing",
  badEffects,
  async (bench) => {
    await bench.turn(start("flow"));
    expect(bench.output).toEqual(["not_serialisable", "not_serialisable", "mine"]);
    expect(bench.kinds).toEqual(["instance.started", "instance.completed"]);
  },
);

const logs = flow(async (ctx) => {
  const { info } = ctx.log;
  info("one");
  await ctx.run(step, 0);
  ctx.log.warn("two");
  await ctx.run(step, 0);
  ctx.log.error("three");
});

scenario("the log is silent while replaying", logs, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(completed(bench.task("step")));
  await bench.turn(completed(bench.task("step")));
  expect(bench.logs.map(({ level, message }) => `${level} ${message}`)).toEqual([
    "info one",
    "warn two",
    "error three",
  ]);
  expect(bench.logs[0]?.at, "written at the real time").toBeGreaterThan(bench.now);
});

const status = flow(async (ctx) => {
  ctx.setStatus({ done: 0 });
  await ctx.run(step, 0);
  ctx.setStatus({ done: 1 });
  await ctx.run(step, 0);
});

scenario("a status is recorded and told", status, async (bench) => {
  const { effects: asked } = await bench.turn(start("flow"));
  expect(asked.map((effect) => effect.kind)).toEqual(["summary", "summary", "task"]);
  expect(bench.state.customStatus).toEqual({ json: { done: 0 } });
  await bench.turn(completed(bench.task("step")));
  expect(bench.state.customStatus).toEqual({ json: { done: 1 } });
});

/** Code that does what it must not. `outstanding`: with a durable operation under way beside it. */
const forbidden: [string, (ctx: OrchestrationContext) => Promise<unknown>, string, RegExp][] = [
  [
    "setTimeout",
    async () => setTimeout(() => undefined, 1),
    "non_durable_call",
    /setTimeout was called inside orchestration "flow"/,
  ],
  ["setInterval", async () => setInterval(() => undefined, 1), "non_durable_call", /setInterval/],
  ["setImmediate", async () => setImmediate(() => undefined), "non_durable_call", /setImmediate/],
  ["fetch", async () => fetch("http://127.0.0.1:1"), "non_durable_call", /fetch was called/],
  [
    "a promise of its own",
    () => new Promise(() => undefined),
    "non_durable_await",
    /waits for something that is not durable/,
  ],
  ["a timer of node", () => delay(1), "non_durable_await", /waits for something that is not durable/],
];

for (const [what, run, code, message] of forbidden) {
  test(`${what} inside code parks it and says so`, async () => {
    const bench = new Bench(flow(run));
    const { events } = await bench.turn(start("flow"));
    expect(bench.fault).toMatchObject({
      kind: "nondeterminism",
      code,
      message: expect.stringMatching(message),
    });
    expect(bench.fault?.hint).toBeTruthy();
    expect(events.map((event) => event.kind)).toEqual(["instance.started"]);
    expect(bench.commits[0]?.deferred).toBe(true);
  });

  test(`${what} parks code also when it swallows the refusal`, async () => {
    const bench = new Bench(
      flow(async (ctx) => {
        await run(ctx).catch(() => undefined);
        return await ctx.run(step, 0);
      }),
    );
    await bench.turn(start("flow"));
    expect(bench.fault?.code).toBe(code);
    expect(bench.kinds).toEqual(["instance.started"]);
  });
}

test("awaiting something not durable is found although something durable is outstanding", async () => {
  let resumed: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    resumed = resolve;
  });
  const bench = new Bench(
    flow(async (ctx) => {
      const beside = ctx.waitForSignal("go");
      await delay(1);
      await ctx.run(step, 0).catch(() => resumed());
      return await beside;
    }),
  );
  await bench.turn(start("flow"));
  expect(bench.fault, "not yet").toBeUndefined();
  await done;
  const { events } = await bench.turn(signal("go"));
  expect(bench.fault).toMatchObject({
    code: "non_durable_await",
    message:
      'orchestration "flow" issued activity "step" on queue "default" after awaiting something that is not durable',
  });
  expect(events.map((event) => event.kind)).toEqual(["signal.received"]);
  expect(bench.commits.at(-1)?.deferred).toBe(true);
});

test("two instances run side by side without seeing each other's turn", async () => {
  const app = flow(async (ctx) => {
    const seen = [ctx.now() === Date.now()];
    for (let i = 0; i < 20; i++) {
      await ctx.run(step, i);
      seen.push(ctx.now() === Date.now());
    }
    return seen.every(Boolean);
  });
  const benches = Array.from({ length: 10 }, (_, i) => new Bench(app, "live", { instanceId: `i${i}` }));
  await Promise.all(
    benches.map(async (bench, index) => {
      bench.now += index * 1000;
      await bench.turn(start("flow"));
      while (bench.state.status === "running") await bench.turn(completed(bench.task("step")));
    }),
  );
  expect(benches.map((bench) => bench.output)).toEqual(Array(10).fill(true));
});

const sleeps = flow(async (ctx) => {
  const order: string[] = [];
  const nap = (name: string, ms: number) => ctx.sleep(ms).then(() => order.push(name));
  await Promise.all([nap("c", 300), nap("a", 100), nap("b", 200), nap("a2", 100)]);
  return order;
});

scenario(
  "timers fire in the order of their time, never early, and all that is due at once",
  sleeps,
  async (bench) => {
    const { effects: asked } = await bench.turn(start("flow"));
    const begun = bench.now;
    expect(asked.slice(1)).toMatchObject(
      [300, 100, 200, 100].map((ms) => ({ kind: "schedule", at: begun + ms })),
    );
    bench.now = begun + 89;
    expect((await bench.turn(wake())).verdicts).toEqual(["late"]);
    bench.now = begun + 190;
    const { events } = await bench.turn(wake(), wake());
    expect(events.map((event) => "of" in event && event.of)).toEqual([3, 5, 4]);
    bench.advance(100);
    await bench.turn(wake());
    expect(bench.output).toEqual(["a", "a2", "b", "c"]);
  },
);
