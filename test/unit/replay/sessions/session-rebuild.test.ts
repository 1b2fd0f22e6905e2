import { expect } from "vitest";
import { defineActivity, defineOrchestration } from "../../../../shared/definitions/index.ts";
import { type Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import {
  activated,
  claimed,
  completed,
  failed,
  held,
  lost,
  parked,
  start,
  stateMissing,
  wake,
} from "../../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async (_ctx, input: number) => input });
const load = defineActivity("load", { run: async (_ctx, input: string) => input });

const rebuilds = defineOrchestration("rebuilds", {
  async run(ctx, { calls }: { calls: number }) {
    const session = await ctx.openSession({
      concurrency: 1,
      recovery: { rebuild: { activity: load, input: "cache" }, maxAutoRetries: 2 },
    });
    const results = await Promise.allSettled(Array.from({ length: calls }, (_, i) => session.run(work, i)));
    return results.map((result) => (result.status === "fulfilled" ? result.value : result.reason.code));
  },
});
const app = { work, load, rebuilds };

const opened = async (bench: Bench, calls: number) => {
  await bench.turn(start("rebuilds", { calls }));
  await bench.turn(claimed("i1-s1", held(1)), activated("i1-s1", held(1)));
};

scenario("the first attachment has nothing to rebuild", app, async (bench) => {
  await opened(bench, 1);
  expect(bench.open("load")).toEqual([]);
  expect(bench.phase("i1-s1")).toBe("active");
});

scenario("after a loss nothing is sent before the rebuild is done", app, async (bench) => {
  await opened(bench, 2);
  const [a, b] = bench.open("work") as [number, number];
  await bench.turn(lost("i1-s1", held(1)));
  expect(bench.kinds.slice(-4)).toEqual([
    "session.lost",
    "activity.attempt_failed",
    "activity.attempt_failed",
    "session.requested",
  ]);
  const again = await bench.turn(activated("i1-s1", held(2)));
  expect(bench.phase("i1-s1")).toBe("rebuilding");
  const sent = again.effects.flatMap((effect) => (effect.kind === "call" ? [effect.task.name] : []));
  expect(sent, "only the rebuild").toEqual(["load"]);
  const rebuilt = await bench.turn(completed(bench.task("load"), "ok", { epoch: 20 }));
  expect(bench.phase("i1-s1")).toBe("active");
  const calls = rebuilt.effects.flatMap((effect) => (effect.kind === "call" ? [effect.task.id] : []));
  expect(calls, "first the one that was running").toEqual([a]);
  await bench.turn(completed(a, 1, { epoch: 20, attempt: 2 }), completed(b, 2, { epoch: 20, attempt: 2 }));
  expect(bench.output).toEqual([1, 2]);
});

scenario(
  "a rebuild that fails is tried again, then ends the session and all that waits",
  app,
  async (bench) => {
    await opened(bench, 2);
    await bench.turn(lost("i1-s1", held(1)));
    await bench.turn(activated("i1-s1", held(2)));
    const rebuild = bench.task("load");
    for (const attempt of [1, 2]) {
      const { effects } = await bench.turn(failed(rebuild, {}, { epoch: 20, attempt }));
      expect(effects, "handed out again").toContainEqual(
        expect.objectContaining({ kind: "call", on: held(2) }),
      );
      expect(bench.phase("i1-s1")).toBe("rebuilding");
    }
    const { effects } = await bench.turn(failed(rebuild, {}, { epoch: 20, attempt: 3 }));
    expect(
      effects.map((effect) => effect.kind),
      "no call to a session without state",
    ).not.toContain("call");
    expect(effects).toContainEqual(expect.objectContaining({ kind: "close-session", on: held(2) }));
    expect(bench.kinds).toContain("session.failed");
    expect(bench.output).toEqual(["session_lost", "session_lost"]);
  },
);

scenario("calls that find their state missing cause one rebuild", app, async (bench) => {
  await opened(bench, 3);
  const [a, b, c] = bench.open("work") as [number, number, number];
  await bench.turn(stateMissing(a, { epoch: 10 }), stateMissing(b, { epoch: 10 }));
  await bench.turn(stateMissing(c, { epoch: 10 }));
  expect(bench.kinds.filter((kind) => kind === "activity.scheduled")).toHaveLength(4);
  const { effects } = await bench.turn(completed(bench.task("load"), "ok", { epoch: 10 }));
  expect(effects.flatMap((effect) => (effect.kind === "call" ? [effect.task.id] : []))).toEqual([a, b, c]);
  for (const of of [a, b, c]) await bench.turn(completed(of, of, { epoch: 10, attempt: 2 }));
  expect(bench.output).toEqual([a, b, c]);
});

scenario(
  "a state that was missing before the rebuild was done asks for no second one",
  app,
  async (bench) => {
    await opened(bench, 2);
    const [a, b] = bench.open("work") as [number, number];
    await bench.turn(stateMissing(a, { epoch: 10 }));
    await bench.turn(completed(bench.task("load"), "ok", { epoch: 10 }));
    const { effects } = await bench.turn(stateMissing(b, { epoch: 10 }));
    expect(bench.open("load")).toEqual([]);
    expect(effects).toContainEqual(expect.objectContaining({ kind: "call", on: held(1) }));
    await bench.turn(completed(b, 2, { epoch: 10, attempt: 2 }));
    await bench.turn(stateMissing(a, { epoch: 10, attempt: 2 }));
    expect(bench.open("load"), "missing again afterwards is another matter").toHaveLength(1);
  },
);

scenario("a rebuild is never intercepted: what it misses ends the session", app, async (bench) => {
  await opened(bench, 1);
  await bench.turn(stateMissing(bench.task("work"), { epoch: 10 }));
  await bench.turn(stateMissing(bench.task("load"), { epoch: 10 }));
  expect(bench.kinds.filter((kind) => kind === "activity.scheduled")).toHaveLength(2);
  expect(bench.phase("i1-s1")).not.toBe("active");
  expect(bench.output).toEqual(["session_lost"]);
});

scenario("a call stops being rebuilt for after maxAutoRetries", app, async (bench) => {
  await opened(bench, 1);
  const of = bench.task("work");
  // The cold start, then the two retries it has.
  for (const attempt of [1, 2, 3]) {
    await bench.turn(stateMissing(of, { epoch: 10, attempt }));
    await bench.turn(completed(bench.task("load"), "ok", { epoch: 10 }));
  }
  await bench.turn(stateMissing(of, { epoch: 10, attempt: 4 }));
  expect(bench.output).toEqual(["session_lost"]);
});

scenario("a loss during the rebuild begins another one on the next holder", app, async (bench) => {
  await opened(bench, 1);
  await bench.turn(lost("i1-s1", held(1)));
  await bench.turn(activated("i1-s1", held(2)));
  const first = bench.task("load");
  await bench.turn(lost("i1-s1", held(2)));
  expect(bench.phase("i1-s1")).toBe("opening");
  const { verdicts } = await bench.turn(completed(first, "late", { epoch: 20 }));
  expect(verdicts).toEqual(["fenced"]);
  await bench.turn(activated("i1-s1", held(3)));
  expect(bench.task("load")).not.toBe(first);
  await bench.turn(completed(bench.task("load"), "ok", { epoch: 30 }));
  await bench.turn(completed(bench.task("work"), 5, { epoch: 30, attempt: 3 }));
  expect(bench.output).toEqual([5]);
});

scenario("an owner that kept its state goes on with the rebuild under its new epoch", app, async (bench) => {
  await opened(bench, 1);
  await bench.turn(lost("i1-s1", held(1)));
  await bench.turn(activated("i1-s1", held(2)));
  const again = held(3, 31, "w2");
  const { verdicts, effects } = await bench.turn(activated("i1-s1", again, { warm: true }));
  expect(verdicts).toEqual(["facts"]);
  expect(bench.phase("i1-s1")).toBe("rebuilding");
  const sent = effects.flatMap((effect) => (effect.kind === "call" ? [effect.task.name] : []));
  expect(sent).toEqual(["load"]);
  await bench.turn(completed(bench.task("load"), "ok", { epoch: 31 }));
  await bench.turn(completed(bench.task("work"), 5, { epoch: 31, attempt: 2 }));
  expect(bench.output).toEqual([5]);
});

scenario("calls that ran beside the rebuild are the new epoch's too", app, async (bench) => {
  await opened(bench, 2);
  const [a, b] = bench.open("work") as [number, number];
  await bench.turn(stateMissing(a, { epoch: 10 }));
  const again = held(2, 21, "w1");
  await bench.turn(activated("i1-s1", again, { warm: true }));
  expect((await bench.turn(completed(b, "old epoch", { epoch: 10 }))).verdicts).toEqual(["fenced"]);
  const { effects } = await bench.turn(completed(bench.task("load"), "ok", { epoch: 21 }));
  const sent = effects.flatMap((effect) => (effect.kind === "call" ? [effect.task.id] : []));
  expect(sent).toEqual([a, b]);
});

scenario("a parked session is rebuilt when it is wanted again", app, async (bench) => {
  await opened(bench, 1);
  await bench.turn(parked("i1-s1", held(1)));
  await bench.turn(activated("i1-s1", held(2)));
  expect(bench.phase("i1-s1")).toBe("rebuilding");
});

scenario("nobody to rebuild on: the creation deadline ends it", app, async (bench) => {
  await opened(bench, 1);
  await bench.turn(lost("i1-s1", held(1)));
  bench.advance(31_000);
  await bench.turn(wake());
  expect(bench.output).toEqual(["session_creation_timeout"]);
});
