/** Q2: refused without trace, or accepted, applied in inbox order, answered; once for ever. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineActivity, defineOrchestration, defineUpdate } from "../../../../shared/definitions/index.ts";
import { Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import {
  completed,
  json,
  signal,
  start,
  terminate,
  update,
} from "../../../support/worlds/instance-messages.ts";

const quick = defineActivity("quick", { run: () => null });
const add = defineUpdate("add", { input: z.number(), output: z.number() });

/** Adds numbers up to 10 in all; `slow` goes by an activity; `go` ends it. */
const counter = defineOrchestration("counter", {
  run: async (ctx) => {
    let sum = 0;
    ctx.onQuery("sum", () => sum);
    ctx.onUpdate(
      add,
      (n) => {
        sum += n;
        return sum;
      },
      {
        validate: (n) => {
          if (sum + n > 10) throw new Error(`no room for ${n}`);
        },
      },
    );
    ctx.onUpdate("slow", async (n) => {
      const more = await ctx.run(quick, n);
      sum += Number(more);
      return { sum, pending: ctx.pendingUpdates };
    });
    ctx.onUpdate("throws", () => {
      throw new TypeError("not today");
    });
    ctx.onUpdate("never", () => ctx.waitForSignal("nobody-sends-this"));
    ctx.onUpdate("wordless", () => () => 1);
    const word = await ctx.waitForSignal("go");
    if (word === "again") ctx.continueAsNew(null);
    return sum;
  },
});
const app = { counter, quick };

const answers = (bench: Bench) =>
  bench.effects.flatMap((effect) =>
    effect.kind === "answer-update" ? [[effect.updateId, effect.record.kind] as const] : [],
  );

scenario("is accepted, applied and answered in one commit", app, async (bench) => {
  await bench.turn(start("counter"));
  const { events } = await bench.turn(update("add", 3, "a"));
  expect(events.map(({ kind }) => kind)).toEqual(["update.accepted", "update.completed"]);
  expect(bench.last("update.completed")).toMatchObject({ of: 2, answer: json(3) });
  expect(answers(bench)).toEqual([
    ["a", "pending"],
    ["a", "completed"],
  ]);
  await bench.turn(signal("go"));
  expect(bench.output).toBe(3);
});

scenario(
  "is applied in inbox order with the other messages, each validated behind the one before",
  app,
  async (bench) => {
    const { verdicts } = await bench.turn(
      start("counter"),
      update("add", 6, "a"),
      update("add", 6, "b"),
      update("add", 4, "c"),
      signal("go"),
      update("add", 0, "d"),
    );
    expect(verdicts).toEqual(["facts", "facts", "update_refused", "facts", "facts", "instance_ended"]);
    expect(bench.output).toBe(10);
    expect(bench.kinds.filter((kind) => kind === "update.accepted")).toHaveLength(2);
  },
);

scenario("is applied once, however often and late it comes", app, async (bench) => {
  await bench.turn(start("counter"), update("add", 1, "a"), update("add", 1, "a"));
  expect((await bench.turn(update("add", 1, "a"))).verdicts).toEqual(["completed"]);
  const { verdicts } = await bench.turn(update("slow", 1, "s"), update("slow", 1, "s"));
  expect(verdicts).toEqual(["facts", "pending"]);
  expect(await bench.query("sum")).toBe(1);
  await bench.turn(completed(bench.task("quick"), 5), signal("go"));
  expect(bench.output).toBe(6);
  expect((await bench.turn(update("add", 1, "a"))).verdicts).toEqual(["completed"]);
  expect((await bench.turn(update("add", 1, "new"))).verdicts).toEqual(["instance_ended"]);
});

scenario("a handler that awaits is answered when it is done, and holds nothing up", app, async (bench) => {
  await bench.turn(start("counter"), update("never", null, "n"), update("slow", 1, "s"));
  await bench.turn(update("add", 2, "a"));
  expect(await bench.query("sum")).toBe(2);
  await bench.turn(completed(bench.task("quick"), 3));
  expect(bench.last("update.completed").answer).toEqual(json({ sum: 5, pending: 2 }));
  await bench.turn(signal("go"));
  expect(bench.output).toBe(5);
  expect(answers(bench).at(-1)).toEqual(["n", "failed"]);
});

scenario(
  "what is pending at continue-as-new is answered clearly, and known to the next execution",
  app,
  async (bench) => {
    await bench.turn(start("counter"), update("add", 2, "done"), update("never", null, "open"));
    await bench.turn(signal("go", "again"), update("add", 7, "next"));
    expect(bench.state.execution).toBe(2);
    expect(bench.effects.find((e) => e.kind === "answer-update" && e.record.kind === "failed")).toMatchObject(
      {
        updateId: "open",
        record: { error: { code: "update_interrupted" } },
      },
    );
    expect(await bench.query("sum")).toBe(7);
    expect((await bench.turn(update("add", 1, "done"), update("never", 1, "open"))).verdicts).toEqual([
      "earlier",
      "earlier",
    ]);
    expect(await bench.query("sum")).toBe(7);
  },
);

scenario("termination answers what is pending", app, async (bench) => {
  await bench.turn(start("counter"), update("never", null, "n"));
  await bench.turn(terminate());
  expect(answers(bench).at(-1)).toEqual(["n", "failed"]);
});

scenario(
  "a handler that throws answers with its error and leaves the instance running",
  app,
  async (bench) => {
    await bench.turn(start("counter"), update("throws"), update("wordless"));
    const failures = bench.events.flatMap((event) =>
      event.kind === "update.failed" ? [event.error.code] : [],
    );
    expect(failures).toEqual(["TypeError", "not_serialisable"]);
    await bench.turn(signal("go"));
    expect(bench.output).toBe(0);
  },
);

scenario(
  "a big input and a big answer go by the blob store",
  {
    echo: defineOrchestration("echo", {
      run: async (ctx) => {
        ctx.onUpdate("echo", (text) => `${text}!`);
        return await ctx.waitForSignal("go");
      },
    }),
  },
  async (bench) => {
    await bench.turn(start("echo"));
    await bench.turn(update("echo", "x".repeat(100)));
    expect(bench.last("update.completed").answer).toHaveProperty("blob");
  },
  { inlineBytes: 50 },
);

describe("bad input", () => {
  const bad = defineOrchestration("bad", {
    run: async (ctx) => {
      let count = 0;
      const nothing = () => count;
      ctx.onUpdate("async-validator", nothing, { validate: (async () => undefined) as () => void });
      ctx.onUpdate("changing-validator", nothing, { validate: () => ctx.setStatus("x") });
      ctx.onUpdate(add, (n) => n);
      ctx.onQuery("count", () => count);
      await ctx.waitForSignal("go");
      count++;
      await ctx.run(quick, null);
      return count;
    },
  });

  test.each([
    ["nope", undefined, "unknown_update"],
    ["add", "three", "invalid_input"],
    ["async-validator", undefined, "validator_broken"],
    ["changing-validator", undefined, "validator_broken"],
  ])("%s with %o is refused as %s and leaves no trace", async (name, input, code) => {
    const bench = new Bench({ bad, quick });
    await bench.turn(start("bad"));
    const before = structuredClone(bench.commits);
    const { verdicts } = await bench.turn(update(name, input));
    expect(verdicts).toEqual([code]);
    expect(bench.commits).toEqual(before);
    await bench.turn(signal("go"));
    await bench.turn(completed(bench.task("quick"), 1));
    expect(bench.fault).toBeUndefined();
    expect(bench.output).toBe(1);
  });

  test("an unknown name is answered with the names there are", async () => {
    const bench = new Bench({ bad, quick });
    await bench.turn(start("bad"));
    expect(await bench.instance.consider(update("nope") as never)).toMatchObject({
      message: 'instance i1 takes no update "nope"; there are: add, async-validator, changing-validator',
    });
  });

  test("a handler that continues as new is told that it may not, and the instance goes on", async () => {
    const continues = defineOrchestration("continues", {
      run: async (ctx) => {
        ctx.onUpdate("again", () => ctx.continueAsNew());
        return await ctx.waitForSignal("go");
      },
    });
    const bench = new Bench({ continues });
    await bench.turn(start("continues"), update("again"));
    const events = bench.commits.flatMap((commit) => commit.events);
    expect(events.find(({ kind }) => kind === "update.failed")).toMatchObject({
      error: { code: "not_in_a_handler" },
    });
    expect(bench.state).toMatchObject({ execution: 1, status: "running" });
    await bench.turn(signal("go", 7));
    expect(bench.output).toBe(7);
  });

  test("not existing, ended and parked are three different codes", async () => {
    const bench = new Bench(app);
    expect((await bench.turn(update("add", 1))).verdicts).toEqual(["instance_not_found"]);
    expect((await bench.turn(signal("early"), update("add", 1))).verdicts).toEqual([
      "facts",
      "instance_not_found",
    ]);
    await bench.turn(start("counter"));
    await bench.deploy({ quick, counter: defineOrchestration("counter", { run: (ctx) => ctx.sleep(1) }) });
    expect((await bench.turn(update("add", 1))).verdicts).toEqual(["instance_parked"]);
    await bench.deploy(app);
    await bench.turn(update("add", 1), signal("go"));
    expect((await bench.turn(update("add", 1, "late"))).verdicts).toEqual(["instance_ended"]);
  });

  test("an input that is gone from the blob store is refused", async () => {
    const bench = new Bench(app);
    await bench.turn(start("counter"));
    const blob = { key: "gone", bytes: 1, sha256: "0".repeat(64) };
    const message = { kind: "update" as const, name: "add", updateId: "u", payload: { blob } };
    expect((await bench.turn(message)).verdicts).toEqual(["blob_missing"]);
  });

  test("code that lost its handler parks the instance and goes on when it is back", async () => {
    const bench = new Bench(app);
    await bench.turn(start("counter"), update("slow", 1, "s"));
    await bench.deploy({
      quick,
      counter: defineOrchestration("counter", { run: (ctx) => ctx.waitForSignal("go") }),
    });
    expect(bench.fault).toMatchObject({ code: "nondeterminism", message: expect.stringContaining('"slow"') });
    await bench.deploy(app);
    await bench.turn(completed(bench.task("quick"), 4), signal("go"));
    expect(bench.output).toBe(4);
  });
});
