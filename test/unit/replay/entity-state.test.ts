/** `ctx.state` over executions, histories that stay short by themselves, and limits. */
import { describe, expect, test } from "vitest";
import { Commit } from "../../../schemas/index.ts";
import { defineOrchestration } from "../../../shared/definitions/index.ts";
import { Bench, scenario } from "../../support/worlds/instance-bench.ts";
import { completed, signal, start, update } from "../../support/worlds/instance-messages.ts";

const account = defineOrchestration("account", {
  state: { balance: 0, moves: [] as number[] },
  queries: {
    balance: ({ balance }) => balance,
    moves: ({ moves }, input) => moves.slice(0, Number(input)),
    breaks: (state) => (state as { moves: number[] }).moves.push(1),
  },
  autoContinue: 12,
  run: async (ctx, bonus: number) => {
    ctx.onUpdate("move", (n) => {
      ctx.state.balance += Number(n) + bonus;
      ctx.state.moves = [...ctx.state.moves, Number(n)];
      return ctx.state.balance;
    });
    await ctx.until(() => ctx.state.balance < 0);
    return { balance: ctx.state.balance, moves: ctx.state.moves.length, execution: ctx.execution };
  },
});

scenario("state lives on, and the history stays short by itself", { account }, async (bench) => {
  await bench.turn(start("account", 1));
  for (let n = 0; n < 30; n++) await bench.turn(update("move", n, `u${n}`));
  expect(bench.state.execution).toBeGreaterThan(4);
  expect(bench.state.lastEventId).toBeLessThan(16);
  expect(await bench.query("balance")).toBe(465);
  expect(await bench.query("moves", 3)).toEqual([0, 1, 2]);
  expect((await bench.turn(update("move", 5, "u29"))).verdicts, "known over executions").toEqual(["earlier"]);
  await bench.turn(update("move", -1000, "last"));
  expect(bench.output).toMatchObject({ balance: -534, moves: 31 });
  expect(await bench.query("balance"), "after the end").toBe(-534);
});

scenario("a query cannot change it", { account }, async (bench) => {
  await bench.turn(start("account", 0));
  await expect(bench.query("breaks")).rejects.toMatchObject({ code: "query_changes_state" });
  expect(await bench.query("moves", 9)).toEqual([]);
});

scenario(
  "what is under way, and unread, is not cut off",
  {
    busy: defineOrchestration("busy", {
      autoContinue: 3,
      run: async (ctx) => {
        if (ctx.execution > 1) return await ctx.waitForSignal("kept");
        ctx.onUpdate("wait", () => ctx.waitForSignal("done"));
        await ctx.waitForSignal("never");
      },
    }),
  },
  async (bench) => {
    await bench.turn(start("busy"), update("wait"));
    await bench.turn(signal("kept", "yes"), signal("other"));
    expect(bench.state.execution, "a handler is under way").toBe(1);
    await bench.turn(signal("done"));
    expect(bench.output).toBe("yes");
  },
);

const dated = defineOrchestration("dated", {
  state: {} as { at?: Date; seen?: Map<string, number> },
  queries: {
    year: ({ at }) => at?.getUTCFullYear(),
    spoil: ({ at }) => at?.setTime(0),
  },
  run: async (ctx) => {
    ctx.state.at = new Date("2027-05-01T00:00:00Z");
    ctx.state.seen = new Map([["a", 1]]);
    await ctx.waitForSignal("go");
    ctx.setStatus({ seen: ctx.state.seen });
    return ctx.state.at;
  },
});

test("an instance that was started by rule 1 keeps what JSON changes, and a query reads it", async () => {
  const waits = defineOrchestration("dated", { run: (ctx) => ctx.waitForSignal("go") });
  const bench = new Bench({ dated: waits });
  await bench.turn(start("dated"));
  bench.commits[0] = byRules(1, bench.commits[0]);
  await bench.deploy({ dated });
  expect(await bench.query("year")).toBe(2027);
  expect(await bench.query("spoil")).toBe(0);
  expect(await bench.query("year")).toBe(2027);
  await bench.turn(signal("go"));
  expect(bench.state).toMatchObject({ status: "completed", customStatus: { json: { seen: {} } } });
  expect(bench.output).toBe("2027-05-01T00:00:00.000Z");
});

const byRules = (rules: number, commit: Commit | undefined): Commit =>
  Commit.parse({
    ...commit,
    events: commit?.events.map((event) => (event.kind === "instance.started" ? { ...event, rules } : event)),
  });

const busy = (autoContinue: number | undefined) =>
  defineOrchestration("busy", {
    state: { done: [] as unknown[] },
    autoContinue,
    run: async (ctx) => {
      for await (const n of ctx.signals("n")) {
        ctx.state.done = [...ctx.state.done, await ctx.run("work", n)];
        if (ctx.state.done.length === 12) return { done: ctx.state.done, execution: ctx.execution };
      }
    },
  });

const workDone = (bench: Bench, output: number) =>
  completed(bench.task("work"), output, { execution: bench.state.execution });

scenario(
  "an instance that always finds another signal continues as new all the same",
  { busy: busy(5) },
  async (bench) => {
    await bench.turn(start("busy"), ...[0, 1, 2].map((n) => signal("n", n)));
    for (let n = 0; n < 12; n++) {
      expect(bench.state.lastEventId).toBeLessThan(12);
      await bench.turn(workDone(bench, n), signal("n", n + 3));
    }
    expect(bench.output).toEqual({ done: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], execution: 7 });
  },
);

test("what ended with signals unread is replayed alike, whatever `autoContinue` is by then", async () => {
  const bench = new Bench({ busy: busy(5) });
  await bench.turn(start("busy"), ...[0, 1, 2, 3].map((n) => signal("n", n)));
  for (let n = 0; bench.state.execution === 1; n++) await bench.turn(workDone(bench, n));
  const first = bench.commits.filter(({ execution }) => execution === 1);
  for (const deployed of [5, 1, 50, undefined]) {
    const again = new Bench({ busy: busy(deployed) });
    again.commits.push(...first);
    await again.instance.load(first, { check: true });
    expect(again.fault, `autoContinue ${deployed}`).toBeUndefined();
  }
});

scenario("what is carried over does not end the next execution at once", { busy: busy(1) }, async (bench) => {
  await bench.turn(start("busy"));
  expect(bench.state.execution).toBe(1);
  await bench.turn(signal("n", 1));
  expect(bench.open("work")).toHaveLength(1);
});

describe("bad input", () => {
  test.each([0, -1, 1.5, Number.NaN])("autoContinue of %s is refused where it is given", (autoContinue) => {
    expect(() => defineOrchestration("x", { autoContinue, run: async () => null })).toThrow(/autoContinue/);
  });

  test("a state that is no JSON names its path", async () => {
    const bad = defineOrchestration("bad", {
      run: async (ctx) => {
        ctx.state.fine = { deep: [1] };
        ctx.state.wrong = { deep: [() => 1] };
      },
    });
    const bench = new Bench({ bad });
    await bench.turn(start("bad"));
    expect(bench.state.error).toMatchObject({
      code: "not_serialisable",
      message: expect.stringMatching(/state\.wrong: .*deep/),
    });
  });

  class Basket {
    readonly items = 1;
  }
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  test.each([
    ["a map", { in: [new Map()] }, /state\.wrong: .* in\[0\] is a Map$/],
    ["a set", new Set(), /it is a Set$/],
    ["a date", { at: new Date(0) }, /at is a Date$/],
    ["an instance of a class", { basket: new Basket() }, /basket is a Basket$/],
    ["bytes", new Uint8Array(1), /it is an Uint8Array$/],
    ["NaN", { mean: Number.NaN }, /mean is NaN$/],
    ["infinity", [1, Number.POSITIVE_INFINITY], /\[1\] is Infinity$/],
    ["a gap in a list", ["x", undefined], /\[1\] is undefined$/],
    ["a cycle", cycle, /circular.*self/s],
    ["a promise that was not awaited", { later: Promise.resolve(1) }, /later is a Promise$/],
  ])("what JSON would change is refused by its place: %s", async (_, wrong, message) => {
    const bad = defineOrchestration("bad", {
      run: async (ctx) => {
        ctx.state.fine = { left: undefined, out: null };
        ctx.state.wrong = wrong;
      },
    });
    const bench = new Bench({ bad });
    await bench.turn(start("bad"));
    expect(bench.state.error).toMatchObject({
      code: "not_serialisable",
      message: expect.stringMatching(message),
    });
    expect(() => defineOrchestration("x", { state: { wrong }, run: async () => null })).toThrow(
      /state of orchestration "x": .*(wrong|circular)/s,
    );
  });

  test("what has become one inside is found before continue-as-new", async () => {
    const bad = defineOrchestration("bad", {
      state: { seen: [] as unknown[] },
      run: async (ctx) => {
        ctx.state.seen.push(new Map());
        ctx.continueAsNew(null);
      },
    });
    const bench = new Bench({ bad });
    await bench.turn(start("bad"));
    expect(bench.state.error).toMatchObject({
      code: "not_serialisable",
      message: expect.stringMatching(/state\.seen: .*\[0\] is a Map/),
    });
  });

  test("a status that JSON would empty is refused by its place", async () => {
    const bad = defineOrchestration("bad", { run: async (ctx) => ctx.setStatus({ done: [new Set([1])] }) });
    const bench = new Bench({ bad });
    await bench.turn(start("bad"));
    expect(bench.state.error).toMatchObject({
      code: "not_serialisable",
      message: expect.stringMatching(/status: .*done\[0\] is a Set/),
    });
  });

  test("and so does one that became none before continue-as-new", async () => {
    const bad = defineOrchestration("bad", {
      run: async (ctx) => {
        const list: unknown[] = [];
        ctx.state.list = list;
        list.push(() => 1);
        ctx.continueAsNew(null);
      },
    });
    const bench = new Bench({ bad });
    await bench.turn(start("bad"));
    expect(bench.state.error).toMatchObject({
      code: "not_serialisable",
      message: expect.stringContaining("state"),
    });
  });
});

test("a state that became no JSON ends what continues by itself, and nothing else", async () => {
  const spoilt = defineOrchestration("spoilt", {
    autoContinue: 3,
    run: async (ctx) => {
      const list: unknown[] = [];
      ctx.state.list = list;
      for await (const _ of ctx.signals("n")) list.push(() => 1);
    },
  });
  const bench = new Bench({ spoilt });
  await bench.turn(start("spoilt"), signal("n"));
  expect(bench.state.status).toBe("running");
  await bench.turn(signal("n"));
  expect(bench.state).toMatchObject({ status: "failed", error: { code: "not_serialisable" } });
});

const endless = defineOrchestration("endless", {
  run: async (ctx) => {
    let count = 0;
    ctx.onQuery("how", () => ({ count, long: ctx.suggestContinueAsNew, events: ctx.historyLength }));
    for await (const _ of ctx.signals("n")) count++;
  },
});
const burst = async (bench: Bench, signals: number) => {
  const some = Array.from({ length: 1000 }, () => signal("n"));
  for (let sent = 0; sent < signals; sent += some.length) await bench.turn(...some);
};

test("a history of 50 000 events still replays, and says that it is long", async () => {
  const bench = new Bench({ endless }, "live", { unchecked: true });
  await bench.turn(start("endless"));
  await burst(bench, 9_000);
  expect(await bench.query("how")).toMatchObject({ long: false });
  await burst(bench, 41_000);
  await bench.reload();
  expect(bench.fault).toBeUndefined();
  expect(await bench.query("how")).toEqual({ count: 50_000, long: true, events: 50_001 });
});

test("a history past the hard limit ends its instance with a clear error", async () => {
  const bench = new Bench({ endless }, "live", { unchecked: true, historyLimit: 2_500 });
  await bench.turn(start("endless"));
  await burst(bench, 3_000);
  expect(bench.state.status).toBe("failed");
  expect(bench.state.error).toMatchObject({
    code: "history_too_long",
    message: expect.stringContaining("continue as new"),
    details: { limit: 2_500 },
  });
  expect(await bench.query("how"), "its code is not blamed for it").toMatchObject({ count: 3_000 });
});
