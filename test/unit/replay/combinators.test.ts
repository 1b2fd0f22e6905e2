import { expect } from "vitest";
import {
  defineActivity,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { isCancelled } from "../../../shared/errors/index.ts";
import { scenario } from "../../support/worlds/instance-bench.ts";
import {
  activated,
  childDone,
  completed,
  failed,
  held,
  signal,
  start,
  wake,
} from "../../support/worlds/instance-messages.ts";

const a = defineActivity("a", { run: async () => "a", retry: { maxAttempts: 1 } });
const b = defineActivity("b", { run: async () => "b", retry: { maxAttempts: 1 } });

const flow = (run: (ctx: OrchestrationContext) => Promise<unknown>) => ({
  a,
  b,
  flow: defineOrchestration("flow", { run }),
});

const raceOfAll = flow(async (ctx) => {
  const winner = await Promise.race([
    ctx.run(a, 0),
    ctx.run(b, 0),
    ctx.sleep("1h"),
    ctx.waitForSignal("go"),
    ctx.child("other", 1),
  ]);
  // The race is over here: what lost must not come back.
  return { winner, next: await ctx.waitForSignal("go") };
});

scenario("all losers of a race are cancelled: activity, timer, waiter, child", raceOfAll, async (bench) => {
  await bench.turn(start("flow"));
  const { events, effects } = await bench.turn(completed(bench.task("a"), "first"));
  expect(events.map((event) => event.kind)).toEqual([
    "activity.completed",
    "activity.cancelled",
    "timer.cancelled",
    "child.cancelled",
  ]);
  expect(effects.map((effect) => effect.kind)).toEqual(["cancel-task", "unschedule", "cancel-child"]);
  const { tasks, timers, children } = bench.state;
  expect([...tasks, ...timers, ...children]).toEqual([]);
  await bench.turn(signal("go", "not swallowed by the waiter that lost"));
  expect(bench.output).toEqual({ winner: "first", next: "not swallowed by the waiter that lost" });
});

scenario("late answers to losers are ignored", raceOfAll, async (bench) => {
  await bench.turn(start("flow"));
  const [lost, child] = [bench.task("b"), bench.last("child.scheduled").id];
  await bench.turn(completed(bench.task("a"), "first"));
  const { verdicts } = await bench.turn(completed(lost, "second"), childDone(child), wake());
  expect(verdicts).toEqual(["late", "late", "late"]);
  expect(bench.commits).toHaveLength(2);
});

scenario("a race may be won by the waiter, in the same turn as others answer", raceOfAll, async (bench) => {
  await bench.turn(start("flow"));
  const [first, second] = [bench.task("a"), bench.task("b")];
  await bench.turn(signal("go", 1), completed(first, "late"), completed(second, "late"));
  expect(bench.kinds.filter((kind) => kind === "activity.cancelled")).toEqual([]);
  await bench.turn(signal("go", 2));
  expect(bench.output).toEqual({ winner: 1, next: 2 });
});

const twoSignals = flow(async (ctx) => {
  await ctx.run(a, 0);
  const seen: unknown[] = [];
  for (let i = 0; i < 3; i++)
    seen.push(await Promise.race([ctx.waitForSignal("left"), ctx.waitForSignal("right")]));
  return seen;
});

scenario(
  "a signal that lost a race against another that was there is not lost",
  twoSignals,
  async (bench) => {
    await bench.turn(start("flow"), signal("right", "r1"), signal("left", "l1"), signal("right", "r2"));
    await bench.turn(completed(bench.task("a")));
    expect(bench.output).toEqual(["l1", "r1", "r2"]);
  },
);

const seenBefore = flow(async (ctx) => {
  const go = ctx.waitForSignal("go");
  await go;
  await ctx.run(a, 0);
  await Promise.race([Promise.resolve("now"), go]);
  return await Promise.race([ctx.waitForSignal("go"), ctx.sleep(1000)]);
});

scenario("a signal the code has seen is not given back", seenBefore, async (bench) => {
  await bench.turn(start("flow"), signal("go", 1));
  await bench.turn(completed(bench.task("a")));
  bench.advance(2000);
  await bench.turn(wake());
  expect(bench.output).toBeUndefined();
  expect(bench.state.status).toBe("completed");
});

const anyOf = flow((ctx) => Promise.any([ctx.run(a, 0), ctx.run(b, 0), ctx.sleep("1h")]));

scenario("any takes the first that succeeds and cancels the rest", anyOf, async (bench) => {
  await bench.turn(start("flow"));
  const second = bench.task("b");
  await bench.turn(failed(bench.task("a")));
  expect(bench.state.status).toBe("running");
  await bench.turn(completed(second, "b"));
  expect(bench.output).toBe("b");
  expect(bench.kinds).toContain("timer.cancelled");
});

const anyFails = flow(async (ctx) => {
  const error = await Promise.any([ctx.run(a, 0), ctx.run(b, 0)]).catch((thrown) => thrown);
  return error.errors.map((each: { code: string }) => each.code);
});

scenario("any fails with all their errors", anyFails, async (bench) => {
  await bench.turn(start("flow"));
  const [first, second] = [bench.task("a"), bench.task("b")];
  await bench.turn(failed(first, { code: "one" }), failed(second, { code: "two" }));
  expect(bench.output).toEqual(["one", "two"]);
});

const allOf = flow(async (ctx) => {
  const others = [ctx.run(b, 0), ctx.sleep("1h"), ctx.waitForSignal("go")];
  const error = await Promise.all([ctx.run(a, 0), ...others]).catch((thrown) => thrown);
  const rest = await Promise.allSettled(others);
  return [error.code, ...rest.map((each) => each.status === "rejected" && isCancelled(each.reason))];
});

scenario("when one of all fails the others are cancelled", allOf, async (bench) => {
  await bench.turn(start("flow"));
  const { events } = await bench.turn(failed(bench.task("a"), { code: "broken" }));
  expect(events.map((event) => event.kind)).toEqual([
    "activity.failed",
    "activity.cancelled",
    "timer.cancelled",
    "instance.completed",
  ]);
  expect(bench.output).toEqual(["broken", true, true, true]);
});

const shielded = flow(async (ctx) => {
  const slow = ctx.run(a, 0);
  const first = await Promise.race([ctx.shield(slow), ctx.run(b, 0)]);
  return [first, await slow];
});

scenario("a shielded loser goes on", shielded, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(completed(bench.task("b"), "b"));
  expect(bench.kinds).not.toContain("activity.cancelled");
  await bench.turn(completed(bench.task("a"), "a"));
  expect(bench.output).toEqual(["b", "a"]);
});

const nested = flow((ctx) =>
  Promise.race([
    Promise.all([ctx.run(a, 0), ctx.run(b, 0)]),
    Promise.allSettled([ctx.sleep("1h"), ctx.sleep("2h")]),
    ctx.scope((inner) => inner.run(a, 1)).result,
    ctx.waitForSignal("stop"),
  ]),
);

scenario("what is nested loses with what it is nested in", nested, async (bench) => {
  await bench.turn(start("flow"));
  const { events } = await bench.turn(signal("stop", "stopped"));
  expect(events.map((event) => event.kind)).toEqual([
    "signal.received",
    "activity.cancelled",
    "activity.cancelled",
    "timer.cancelled",
    "timer.cancelled",
    "activity.cancelled",
    "instance.completed",
  ]);
  expect(bench.output).toBe("stopped");
});

const opening = flow(async (ctx) => {
  const winner = await Promise.race([
    ctx.openSession({ id: "slow" }).then((session) => session.id),
    ctx.sleep(1000).then(() => "too slow"),
  ]);
  return [winner, await ctx.waitForSignal("go")];
});

const openingDirectly = flow(async (ctx) => {
  const winner = await Promise.race([ctx.openSession({ id: "slow" }), ctx.sleep(1000)]);
  return [winner === undefined, await ctx.waitForSignal("go")];
});

scenario(
  "an opening that lost is called off: nobody would have the session",
  openingDirectly,
  async (bench) => {
    await bench.turn(start("flow"));
    bench.advance(1500);
    const { events, effects } = await bench.turn(wake());
    expect(events.map((event) => event.kind)).toEqual(["timer.fired", "session.closed"]);
    expect(effects.map((effect) => effect.kind)).toContain("withdraw-claim");
    const { verdicts } = await bench.turn(activated("slow", held(1)));
    expect(verdicts).toEqual(["repeated"]);
    await bench.turn(signal("go", 1));
    expect(bench.output).toEqual([true, 1]);
  },
);

scenario("an opening behind `then` is called off too", opening, async (bench) => {
  await bench.turn(start("flow"));
  bench.advance(1500);
  await bench.turn(wake());
  expect(bench.phase("slow")).toBe("closed");
  await bench.turn(signal("go", 1));
  expect(bench.output).toEqual(["too slow", 1]);
});

const odd = flow(async (ctx) => {
  const refused = await Promise.race(null as never).catch((error) => error.name);
  const value = await Promise.race([3, ctx.sleep("1h")]);
  const none = await Promise.all([]);
  return [refused, value, none];
});

scenario("combinators take what they always took", odd, async (bench) => {
  await bench.turn(start("flow"));
  expect(bench.output).toEqual(["TypeError", 3, []]);
});
