import { expect } from "vitest";
import { z } from "zod";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { scenario } from "../../support/instance-bench.ts";
import {
  activated,
  claimed,
  completed,
  held,
  initFailed,
  lost,
  refused,
  start,
  wake,
} from "../../support/instance-messages.ts";

const model = defineSession("model", {
  config: z.object({ size: z.number() }),
  init: (_ctx, config) => ({ config }),
  calls: {
    ask: call({ input: z.string(), output: z.string(), run: (_state, question) => question }),
  },
});
const other = defineSession("other", { init: () => ({}), calls: {} });
const add = defineActivity("add", { run: async (_ctx, input: number) => input });

const asks = defineOrchestration("asks", {
  async run(ctx) {
    const session = await ctx.openSession(model, { config: { size: 1 } });
    const { id, state, workerId, epoch } = session.info;
    return { answer: await session.ask("why"), id, state, workerId, epoch };
  },
});

scenario("a session is opened, claimed, activated and called", { model, asks }, async (bench) => {
  const first = await bench.turn(start("asks"));
  expect(bench.kinds).toEqual(["instance.started", "session.opened", "session.requested"]);
  expect(first.effects.map((effect) => effect.kind)).toEqual([
    "summary",
    "register-session",
    "summary",
    "schedule",
    "register-session",
    "claim",
  ]);
  expect(first.effects.at(-1)).toMatchObject({
    attachment: 1,
    restore: false,
    deadlineAt: bench.now + 30_000,
  });
  await bench.turn(claimed("i1-s1", held(1)));
  expect(bench.phase("i1-s1")).toBe("claimed");
  const { effects } = await bench.turn(activated("i1-s1", held(1)));
  expect(bench.phase("i1-s1")).toBe("active");
  expect(effects).toContainEqual(expect.objectContaining({ kind: "call", on: held(1) }));
  await bench.turn(completed(bench.task("ask"), "because", { epoch: 10 }));
  expect(bench.output).toEqual({
    answer: "because",
    id: "i1-s1",
    state: "active",
    workerId: "w1",
    epoch: 10,
  });
  expect(bench.kinds.slice(-2)).toEqual(["session.closed", "instance.completed"]);
});

const opensAndRuns = defineOrchestration("opens-and-runs", {
  async run(ctx) {
    const [session, sum] = await Promise.all([
      ctx.openSession(model, { config: { size: 1 } }),
      ctx.run(add, 1),
    ]);
    return [session.id, sum];
  },
});

scenario(
  "what is issued beside an opening keeps its event id",
  { model, add, opensAndRuns },
  async (bench) => {
    await bench.turn(start("opens-and-runs"));
    await bench.turn(completed(bench.task("add"), 7));
    await bench.turn(activated("i1-s1", held(1)));
    expect(bench.output).toEqual(["i1-s1", 7]);
  },
);

const lazily = defineOrchestration("lazily", {
  async run(ctx) {
    const session = await ctx.openSession(model, { config: { size: 1 }, lazy: true });
    ctx.setStatus(session.info.state);
    await ctx.run(add, 1);
    return await Promise.all([session.ask("a"), session.ask("b"), ctx.run(add, 2)]);
  },
});

scenario("a lazy session is asked for at its first call, once", { model, add, lazily }, async (bench) => {
  await bench.turn(start("lazily"));
  expect(bench.phase("i1-s1")).toBe("parked");
  expect(bench.kinds).not.toContain("session.requested");
  const { effects } = await bench.turn(completed(bench.task("add"), 1));
  expect(bench.kinds.filter((kind) => kind === "session.requested")).toHaveLength(1);
  expect(effects.map((effect) => effect.kind)).toEqual(["task", "schedule", "register-session", "claim"]);
  const sent = await bench.turn(activated("i1-s1", held(1)));
  expect(sent.effects.filter((effect) => effect.kind === "call")).toHaveLength(2);
  const [a, b] = bench.open("ask") as [number, number];
  await bench.turn(completed(b, "B", { epoch: 10 }), completed(a, "A", { epoch: 10 }));
  await bench.turn(completed(bench.task("add"), 2));
  expect(bench.output).toEqual(["A", "B", 2]);
});
