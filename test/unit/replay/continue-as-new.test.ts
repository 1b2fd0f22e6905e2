import { expect } from "vitest";
import { defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { type Bench, scenario } from "../../support/worlds/instance-bench.ts";
import {
  activated,
  cancel,
  childDone,
  completed,
  held,
  lost,
  signal,
  start,
  stateMissing,
  wake,
} from "../../support/worlds/instance-messages.ts";

const step = defineActivity("step", { run: async () => 0 });
const counts = defineOrchestration("counts", {
  async run(ctx, { left, sum }: { left: number; sum: number }): Promise<unknown> {
    const next = sum + (await ctx.run(step, left));
    if (left > 1) ctx.continueAsNew({ left: left - 1, sum: next });
    return { sum: next, execution: ctx.execution, id: ctx.spawn("kid", 0) };
  },
});

scenario("each execution has a history of its own", { step, counts }, async (bench) => {
  await bench.turn(start("counts", { left: 3, sum: 0 }));
  const begun = bench.now;
  for (const execution of [1, 2, 3]) {
    expect(bench.state.execution).toBe(execution);
    await bench.turn(completed(bench.task("step"), 10, { execution }));
  }
  expect(bench.output).toEqual({ sum: 30, execution: 3, id: "i1-c1-e3" });
  expect(bench.commits.map((commit) => [commit.execution, commit.events.map((event) => event.kind)])).toEqual(
    [
      [1, ["instance.started", "activity.scheduled"]],
      [1, ["activity.completed", "instance.continued"]],
      [2, ["instance.started", "activity.scheduled"]],
      [2, ["activity.completed", "instance.continued"]],
      [3, ["instance.started", "activity.scheduled"]],
      [3, ["activity.completed", "child.scheduled", "instance.completed"]],
    ],
  );
  expect(bench.state.startedAt, "the first start counts").toBe(begun);
});

scenario("answers to an earlier execution are late", { step, counts }, async (bench) => {
  await bench.turn(start("counts", { left: 2, sum: 0 }));
  await bench.turn(completed(2, 10));
  const { verdicts } = await bench.turn(completed(2, 99, { execution: 1 }), childDone(2, 0, 1));
  expect(verdicts).toEqual(["late", "late"]);
});

const drains = defineOrchestration("drains", {
  async run(ctx, { seen }: { seen: unknown[] }): Promise<unknown> {
    const next = [...seen, await ctx.waitForSignal("item")];
    if (next.length < 4) ctx.continueAsNew({ seen: next });
    return next;
  },
});

scenario("unread signals come along, in their order", { drains }, async (bench) => {
  await bench.turn(start("drains", { seen: [] }));
  await bench.turn(signal("item", 1), signal("item", 2), signal("other", 0), signal("item", 3));
  expect(bench.state.execution).toBe(4);
  await bench.turn(signal("item", 4));
  expect(bench.output).toEqual([1, 2, 3, 4]);
});

const leaves = defineOrchestration("leaves", {
  async run(ctx, { again }: { again: boolean }): Promise<unknown> {
    if (!again) return "second";
    ctx.run(step, 0, { scheduleToClose: "1h" });
    ctx.sleep("1h");
    ctx.child("kid", 0);
    await ctx.waitForSignal("go");
    return ctx.continueAsNew({ again: false });
  },
});

scenario("what was open is let go of", { step, leaves }, async (bench) => {
  await bench.turn(start("leaves", { again: true }));
  const { effects } = await bench.turn(signal("go"));
  expect(effects.map((effect) => effect.kind)).toEqual([
    "cancel-task",
    "unschedule",
    "unschedule",
    "cancel-child",
    "summary",
    "summary",
  ]);
  expect(bench.output).toBe("second");
});

const holds = defineOrchestration("holds", {
  async run(ctx, { rounds }: { rounds: number }): Promise<unknown> {
    const session = await ctx.openSession({ onLost: "reclaim" });
    const named = await ctx.openSession({ id: "mine-s1", lazy: true });
    const value = await session.run(step, rounds);
    if (rounds > 1) return ctx.continueAsNew({ rounds: rounds - 1 });
    return { value, id: session.id, epoch: session.info.epoch, named: named.id };
  },
});

scenario("open sessions come along by themselves, without a new claim", { step, holds }, async (bench) => {
  await bench.turn(start("holds", { rounds: 3 }));
  await bench.turn(activated("i1-s1", held(1)));
  for (const execution of [1, 2, 3])
    await bench.turn(completed(bench.task("step"), execution, { epoch: 10, execution }));
  expect(bench.output).toEqual({ value: 3, id: "i1-s1", epoch: 10, named: "mine-s1" });
  expect(bench.effects.filter((effect) => effect.kind === "claim")).toHaveLength(1);
  expect(bench.effects.filter((effect) => effect.kind === "close-session")).toHaveLength(1);
});

scenario("a carried session can still be lost and claimed anew", { step, holds }, async (bench) => {
  await bench.turn(start("holds", { rounds: 2 }));
  await bench.turn(activated("i1-s1", held(1)));
  await bench.turn(completed(bench.task("step"), 1, { epoch: 10 }));
  const { effects } = await bench.turn(lost("i1-s1", held(1)));
  expect(effects).toContainEqual(expect.objectContaining({ kind: "claim", attachment: 2 }));
  await bench.turn(activated("i1-s1", held(2)));
  await bench.turn(completed(bench.task("step"), 2, { epoch: 20, execution: 2, attempt: 2 }));
  expect(bench.output).toMatchObject({ value: 2, epoch: 20 });
});

const moves = defineOrchestration("moves", {
  async run(ctx, { round }: { round: number }): Promise<unknown> {
    const ids: string[] = [];
    for (let i = 0; i < 2; i++) {
      const session = await ctx.openSession({ lazy: true });
      ids.push(session.id);
      if (round === 1 && i === 0) await session.close();
    }
    if (round === 1) return ctx.continueAsNew({ round: 2 });
    return ids;
  },
});

scenario(
  "a session that was closed gets a new id, one that was not keeps its own",
  { moves },
  async (bench) => {
    await bench.turn(start("moves", { round: 1 }));
    expect(bench.output).toEqual(["i1-s1-e2", "i1-s2"]);
  },
);

const rebuilds = defineOrchestration("rebuilds", {
  async run(ctx, { again }: { again: boolean }): Promise<unknown> {
    const session = await ctx.openSession({ id: "s", recovery: { rebuild: { activity: step } } });
    const call = session.run(step, 1);
    if (again) {
      await ctx.waitForSignal("go");
      return ctx.continueAsNew({ again: false });
    }
    return await call;
  },
});

scenario(
  "a rebuild under way begins again: the session still needs it",
  { step, rebuilds },
  async (bench) => {
    await bench.turn(start("rebuilds", { again: true }));
    await bench.turn(activated("s", held(1)));
    await bench.turn(stateMissing(bench.task("step"), { epoch: 10 }));
    expect(bench.phase("s")).toBe("rebuilding");
    const { effects } = await bench.turn(signal("go"));
    expect(bench.phase("s")).toBe("rebuilding");
    expect(effects.filter((effect) => effect.kind === "call")).toHaveLength(1);
    const [rebuild, call] = bench.open("step") as [number, number];
    await bench.turn(completed(rebuild, "ok", { epoch: 10, execution: 2 }));
    await bench.turn(completed(call, "value", { epoch: 10, execution: 2 }));
    expect(bench.output).toBe("value");
  },
);

const opensAndGoes = defineOrchestration("opens-and-goes", {
  async run(ctx, { again }: { again: boolean }): Promise<unknown> {
    const opening = ctx.openSession({ id: "s" });
    if (again) return ctx.continueAsNew({ again: false });
    return (await opening).info.state;
  },
});

scenario("an opening under way comes along", { opensAndGoes }, async (bench) => {
  const { effects } = await bench.turn(start("opens-and-goes", { again: true }));
  expect(effects.filter((effect) => effect.kind === "claim")).toHaveLength(1);
  expect(bench.phase("s")).toBe("opening");
  await bench.turn(activated("s", held(1)));
  expect(bench.output).toBe("active");
});

scenario("its creation deadline too", { opensAndGoes }, async (bench) => {
  await bench.turn(start("opens-and-goes", { again: true }));
  bench.advance(31_000);
  await bench.turn(wake());
  expect(bench.state).toMatchObject({ status: "failed", error: { code: "session_creation_timeout" } });
});

const cancelled = async (bench: Bench, ...order: ("cancel" | "step")[]) => {
  await bench.turn(start("counts", { left: 2, sum: 0 }));
  const of = bench.task("step");
  await bench.turn(...order.map((what) => (what === "cancel" ? cancel("enough") : completed(of, 1))));
};

scenario(
  "a cancel the old execution had no time for reaches the new one",
  { step, counts },
  async (bench) => {
    await cancelled(bench, "step", "cancel");
    expect(bench.state).toMatchObject({
      status: "cancelled",
      execution: 2,
      error: { message: "cancelled: enough" },
    });
  },
);

scenario("a cancel in time ends the old one", { step, counts }, async (bench) => {
  await cancelled(bench, "cancel", "step");
  expect(bench.state).toMatchObject({ status: "cancelled", execution: 1 });
});

const strange = defineOrchestration("strange", {
  async run(ctx): Promise<unknown> {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    return ctx.continueAsNew(cyclic);
  },
});

scenario(
  "an input that cannot be written fails the instance, not the process",
  { strange },
  async (bench) => {
    await bench.turn(start("strange"));
    expect(bench.state).toMatchObject({ status: "failed", error: { code: "not_serialisable" } });
  },
);

const child = { parent: { instanceId: "p" as never, execution: 1, of: 4 } };

scenario("the parent hears from the last execution only", { step, counts }, async (bench) => {
  await bench.turn(start("counts", { left: 2, sum: 0 }, child));
  const first = await bench.turn(completed(2, 1));
  expect(first.effects.map((effect) => effect.kind)).not.toContain("report-to-parent");
  const { effects } = await bench.turn(completed(2, 1, { execution: 2 }));
  expect(effects).toContainEqual(expect.objectContaining({ kind: "report-to-parent", ...child }));
});

const reopens = defineOrchestration("reopens", {
  async run(ctx, left: number): Promise<unknown> {
    const session = await ctx.openSession({ id: "mine" });
    await session.close();
    return left === 0 ? "done" : ctx.continueAsNew(left - 1);
  },
});

scenario(
  "a session opened again under its id in the next execution asks for a new attachment",
  { reopens },
  async (bench) => {
    await bench.turn(start("reopens", 2));
    for (const attachment of [1, 2, 3]) {
      expect(bench.last("session.requested")).toMatchObject({ sessionId: "mine", attachment });
      await bench.turn(activated("mine", held(attachment)));
    }
    expect(bench.output).toBe("done");
  },
);
