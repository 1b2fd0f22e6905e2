import { expect, test } from "vitest";
import {
  collectApp,
  defineActivity,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { CancelledError, isCancelled } from "../../../shared/errors/index.ts";
import { historyFile } from "../../../shared/sdk/replaying/history-file.ts";
import { replayHistory } from "../../../shared/sdk/replaying/replay-history.ts";
import { Bench, scenario } from "../../support/worlds/instance-bench.ts";
import {
  activated,
  cancel,
  completed,
  held,
  signal,
  start,
  terminate,
  wake,
} from "../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => "done" });
const tidy = defineActivity("tidy", { run: async () => "tidied" });

const flow = (run: (ctx: OrchestrationContext) => Promise<unknown>) => ({
  work,
  tidy,
  flow: defineOrchestration("flow", { run }),
});

const waits = flow(async (ctx) => {
  await Promise.all([ctx.run(work, 0), ctx.sleep("1h"), ctx.child("other", 0), ctx.waitForSignal("go")]);
});

scenario("cancelling ends all that is open, and then the instance", waits, async (bench) => {
  await bench.turn(start("flow"));
  const { events, effects } = await bench.turn(cancel("no longer needed"));
  expect(events.map((event) => event.kind)).toEqual([
    "cancel.requested",
    "activity.cancelled",
    "timer.cancelled",
    "child.cancelled",
    "instance.cancelled",
  ]);
  expect(effects.map((effect) => effect.kind)).toEqual([
    "summary",
    "cancel-task",
    "unschedule",
    "cancel-child",
    "summary",
  ]);
  expect(bench.state).toMatchObject({
    status: "cancelled",
    error: { code: "cancelled", message: "cancelled: no longer needed" },
  });
});

scenario("cancelling twice is cancelling once", waits, async (bench) => {
  await bench.turn(start("flow"));
  const { verdicts } = await bench.turn(cancel("one"), cancel("two"));
  expect(verdicts).toEqual(["facts", "repeated"]);
});

scenario("an instance may be cancelled in the turn it starts", waits, async (bench) => {
  await bench.turn(start("flow"), cancel());
  expect(bench.state.status).toBe("cancelled");
});

const cleansUp = flow(async (ctx) => {
  try {
    await ctx.run(work, 0);
  } finally {
    await ctx.uncancellable(async (inner) => {
      await inner.run(tidy, 0);
      await inner.scope((deeper) => deeper.run(tidy, 1)).result;
    });
  }
});

scenario("clean-up runs although the instance is cancelled", cleansUp, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(cancel());
  expect(bench.state.status).toBe("running");
  await bench.turn(completed(bench.task("tidy")));
  await bench.turn(completed(bench.task("tidy")));
  expect(bench.state.status).toBe("cancelled");
});

const stubborn = flow(async (ctx) => {
  const tries = [
    () => ctx.run(work, 0),
    () => ctx.sleep(10),
    () => ctx.waitForSignal("go"),
    () => ctx.child("other", 0),
    () => ctx.openSession(),
    () => ctx.scope((inner) => inner.run(work, 1)).result,
    async () => ctx.spawn("other", 0),
  ];
  await ctx.run(work, 0).catch(() => undefined);
  const codes: string[] = [];
  for (const attempt of tries)
    await attempt().catch((error) => codes.push(isCancelled(error) ? error.message : String(error)));
  return { codes, aborted: ctx.signal.aborted };
});

scenario("nothing begins in a cancelled scope, and code may end as it likes", stubborn, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(cancel("enough"));
  expect(bench.state.status).toBe("completed");
  expect(bench.output).toEqual({ codes: Array(7).fill("enough"), aborted: true });
  expect(bench.kinds.filter((kind) => kind === "activity.scheduled")).toHaveLength(1);
});

const scoped = flow(async (ctx) => {
  const branch = ctx.scope(async (inner) => {
    await Promise.all([
      inner.run(work, 1),
      inner.sleep("1h"),
      inner.scope((deep) => deep.run(work, 2)).result,
    ]);
  });
  const beside = ctx.run(tidy, 0);
  await ctx.waitForSignal("stop");
  branch.cancel("changed my mind");
  const reason = await branch.result.catch((error) => error.message);
  return [reason, await beside];
});

scenario("a scope is cancelled alone, with what is inside it", scoped, async (bench) => {
  await bench.turn(start("flow"));
  const { events } = await bench.turn(signal("stop"));
  expect(events.map((event) => event.kind)).toEqual([
    "signal.received",
    "activity.cancelled",
    "timer.cancelled",
    "activity.cancelled",
  ]);
  await bench.turn(completed(bench.task("tidy"), "kept"));
  expect(bench.output).toEqual(["changed my mind", "kept"]);
});

const listening = flow(async (ctx) => {
  const notes: string[] = [];
  ctx.signal.addEventListener("abort", () => notes.push(String(ctx.signal.reason)));
  await ctx.run(work, 0).catch(() => notes.push("rejected"));
  return notes;
});

scenario("the signal aborts when the instance is cancelled", listening, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(cancel("why not"));
  expect(bench.output).toEqual(["why not", "rejected"]);
});

const throwsItself = flow(async () => {
  throw new CancelledError("of my own");
});

scenario("code that cancels itself has failed: nobody asked", throwsItself, async (bench) => {
  await bench.turn(start("flow"));
  expect(bench.state).toMatchObject({ status: "failed", error: { code: "cancelled" } });
});

const opens = flow(async (ctx) => {
  await ctx.openSession({ id: "s" });
});

scenario("cancelled while opening: the session is closed, its claim withdrawn", opens, async (bench) => {
  await bench.turn(start("flow"));
  const { events, effects } = await bench.turn(cancel());
  expect(events.map((event) => event.kind)).toEqual([
    "cancel.requested",
    "session.closed",
    "instance.cancelled",
  ]);
  expect(effects.map((effect) => effect.kind)).toContain("withdraw-claim");
  const { verdicts } = await bench.turn(activated("s", held(1)));
  expect(verdicts).toEqual(["ended"]);
});

const opensInScope = flow(async (ctx) => {
  const branch = ctx.scope((inner) => inner.openSession({ id: "s" }));
  const beside = ctx.openSession({ id: "s" });
  await ctx.waitForSignal("stop");
  branch.cancel();
  return (await beside).id;
});

scenario("an opening others wait for too is not closed", opensInScope, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(signal("stop"));
  expect(bench.phase("s")).toBe("opening");
  await bench.turn(activated("s", held(1)));
  expect(bench.output).toBe("s");
});

scenario("terminate ends at once, without the code", cleansUp, async (bench) => {
  await bench.turn(start("flow"));
  const { events, effects, verdicts } = await bench.turn(terminate("gone mad"), cancel(), signal("x"));
  expect(verdicts).toEqual(["facts", "ended", "ended"]);
  expect(events.map((event) => event.kind)).toEqual(["instance.terminated"]);
  expect(effects.map((effect) => effect.kind)).toEqual(["cancel-task", "summary"]);
  expect(bench.state).toMatchObject({ status: "terminated", error: { code: "terminated" } });
});

const anyOf = flow(async (ctx) => await Promise.any([ctx.run(work, 0), ctx.sleep("1h")]));

scenario("cancelled while it waits for any of several: it ends as cancelled", anyOf, async (bench) => {
  await bench.turn(start("flow"));
  const { events } = await bench.turn(cancel());
  expect(events.at(-1)?.kind).toBe("instance.cancelled");
});

test("an instance that was started before rule 2 and failed so is replayed as it ended", async () => {
  const bench = new Bench(anyOf);
  await bench.turn(start("flow"));
  await bench.turn(cancel());
  const error = { code: "AggregateError", message: "All promises were rejected", retryable: true };
  const before = bench.commits.map((commit) => ({
    ...commit,
    events: commit.events.map((event) => {
      if (event.kind === "instance.started") return { ...event, rules: 1 };
      return event.kind === "instance.cancelled"
        ? { id: event.id, kind: "instance.failed" as const, error }
        : event;
    }),
  }));
  const { instanceId } = bench.state;
  const outcome = await replayHistory(collectApp(anyOf), historyFile(instanceId, before));
  expect(outcome).toMatchObject({ kind: "agrees" });
});

const raced = flow(async (ctx) => {
  await ctx.run(work, 0);
  return await ctx.run(work, 1);
});

scenario("a result and the cancel in one turn: the result is seen first", raced, async (bench) => {
  await bench.turn(start("flow"));
  const { events } = await bench.turn(completed(bench.task("work")), cancel());
  expect(events.map((event) => event.kind)).toEqual([
    "activity.completed",
    "cancel.requested",
    "activity.scheduled",
    "activity.cancelled",
    "instance.cancelled",
  ]);
});

scenario("the cancel and a result in one turn: the result is for nobody", raced, async (bench) => {
  await bench.turn(start("flow"));
  const { events } = await bench.turn(cancel(), completed(bench.task("work")));
  expect(events.map((event) => event.kind)).toEqual([
    "cancel.requested",
    "activity.completed",
    "instance.cancelled",
  ]);
});

scenario("a wake finds nothing in an ended instance", raced, async (bench) => {
  await bench.turn(start("flow"), cancel());
  const { verdicts } = await bench.turn(wake());
  expect(verdicts).toEqual(["ended"]);
});
