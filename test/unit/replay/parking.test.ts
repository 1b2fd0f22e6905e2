/** T6: code that disagrees with its history is set aside with a message that names both, and a fixed one goes on. */
import { expect, test } from "vitest";
import { z } from "zod";
import {
  defineActivity,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { Bench, scenario } from "../../support/worlds/instance-bench.ts";
import {
  activated,
  cancel,
  completed,
  held,
  lost,
  signal,
  start,
  terminate,
  wake,
} from "../../support/worlds/instance-messages.ts";

const charge = defineActivity("charge", { run: async () => 0 });
const refund = defineActivity("refund", { run: async () => 0 });
const version = (run: (ctx: OrchestrationContext) => Promise<unknown>) => ({
  charge,
  refund,
  order: defineOrchestration("order", { run }),
});

const original = version(async (ctx) => {
  const paid = await ctx.run(charge, 1);
  const word = await ctx.waitForSignal("word");
  return { paid, word, at: ctx.now() };
});
const changed = version(async (ctx) => {
  await ctx.run(refund, 1);
});

test("changed code is parked, and both commands are named", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy(changed);
  expect(bench.fault).toMatchObject({
    kind: "nondeterminism",
    code: "nondeterminism",
    message:
      'history has activity "charge" on queue "default" (event 2), the code issued activity "refund" on queue "default"',
    details: { eventId: 2 },
  });
});

const others: [string, (ctx: OrchestrationContext) => Promise<unknown>, string][] = [
  ["a timer", (ctx) => ctx.sleep(1), "the code issued a timer"],
  ["a child", (ctx) => ctx.child("kid", 0), 'the code issued attached child "kid" as "i1-c1"'],
  ["nothing", (ctx) => ctx.waitForSignal("word"), "the code issued nothing more in this turn"],
  ["its end", async () => 1, "the code issued completion"],
  [
    "its failure",
    async () => {
      throw new Error("x");
    },
    "the code issued failure",
  ],
  ["a session", (ctx) => ctx.openSession({ id: "s" }), 'the code issued session "s" of type "bare"'],
  [
    "another queue",
    (ctx) => ctx.run(charge, 1, { queue: "fast" }),
    'the code issued activity "charge" on queue "fast"',
  ],
];
for (const [what, run, words] of others) {
  test(`code that now issues ${what} is parked`, async () => {
    const bench = new Bench(original);
    await bench.turn(start("order"));
    await bench.deploy(version(run));
    expect(bench.fault?.message).toContain(words);
  });
}

test("code that issues more than history has is parked", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy(
    version(async (ctx) => {
      await Promise.all([ctx.run(charge, 1), ctx.run(refund, 1)]);
    }),
  );
  expect(bench.fault?.message).toBe(
    'history has nothing more in this turn, the code issued activity "refund" on queue "default"',
  );
});

test("a cancellation that history does not have is parked too, and harms nobody", async () => {
  const bench = new Bench(version((ctx) => ctx.uncancellable((inner) => inner.run(charge, 1))));
  await bench.turn(start("order"));
  await bench.turn(cancel());
  await bench.deploy(version((ctx) => ctx.run(charge, 1)));
  expect(bench.fault?.message).toContain("the code issued activity.cancelled of event 2");
});

test("inputs and durations may change between deployments", async () => {
  const bench = new Bench(version((ctx) => ctx.run(charge, 1)));
  await bench.turn(start("order"));
  await bench.deploy(version((ctx) => ctx.run(charge, { other: "input" }, { retry: { maxAttempts: 9 } })));
  expect(bench.fault).toBeUndefined();
});

test("what happens while parked is recorded as deferred, and shown to the fixed code at its own time", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy(changed);
  const first = await bench.turn(completed(2, "paid"));
  expect(first.events.map((event) => event.kind)).toEqual(["activity.completed"]);
  const second = await bench.turn(signal("word", "sesame"));
  const heardAt = bench.now;
  expect(second.verdicts).toEqual(["facts"]);
  expect(bench.commits.map((commit) => commit.deferred)).toEqual([undefined, true, true]);
  expect(bench.fault).toBeDefined();

  bench.advance(60_000);
  await bench.deploy(original);
  expect(bench.fault).toBeUndefined();
  expect(bench.instance.hasUnseen).toBe(true);
  await bench.turn(wake());
  expect(bench.instance.popResumed()).toBe(true);
  expect(bench.output).toEqual({ paid: "paid", word: "sesame", at: heardAt });
  await bench.reload();
  expect(bench.fault).toBeUndefined();
});

test("facts keep their first answer while parked", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy(changed);
  const { verdicts } = await bench.turn(completed(2, "first"), completed(2, "second"));
  expect(verdicts).toEqual(["facts", "late"]);
});

test("going on with nothing to write leaves the history able to go on again", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy(changed);
  await bench.turn(completed(2, "paid"));
  await bench.deploy(original);
  const { events } = await bench.turn(wake());
  expect(events).toEqual([]);
  bench.advance(5000);
  await bench.turn(signal("word", 1));
  const live = bench.output;
  expect(live).toMatchObject({ paid: "paid", word: 1 });
  await bench.reload();
  expect(bench.output).toEqual(live);
});

test("code that parks in the live turn leaves no commands behind", async () => {
  const bench = new Bench(
    version(async (ctx) => {
      await ctx.run(charge, 1);
      ctx.setStatus("half way");
      setTimeout(() => undefined, 1);
    }),
  );
  await bench.turn(start("order"));
  const { events } = await bench.turn(completed(2, "paid"));
  expect(events.map((event) => event.kind)).toEqual(["activity.completed"]);
  await bench.deploy(original);
  await bench.turn(signal("word", 1));
  expect(bench.output).toMatchObject({ paid: "paid", word: 1 });
});

test("an instance parked at its start runs when it is mended", async () => {
  const bench = new Bench(version(() => new Promise(() => undefined)));
  await bench.turn(start("order"), signal("word", 1));
  expect(bench.fault?.code).toBe("non_durable_await");
  await bench.turn(signal("word", 2));
  await bench.deploy(original);
  await bench.turn(wake());
  await bench.turn(completed(bench.task("charge"), "paid"));
  expect(bench.output).toMatchObject({ paid: "paid", word: 1 });
});

test("a parked instance can be terminated", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy(changed);
  await bench.turn(terminate());
  expect(bench.state.status).toBe("terminated");
  expect(bench.fault).toBeUndefined();
  await bench.deploy(changed);
  expect(bench.fault, "what is over needs no code").toBeUndefined();
});

test("a parked instance can be asked to cancel: its code does it when it is back", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy(changed);
  await bench.turn(cancel("stop"));
  await bench.deploy(original);
  await bench.turn(wake());
  expect(bench.state.status).toBe("cancelled");
});

scenario("an unknown orchestration fails, with the names there are", original, async (bench) => {
  await bench.turn(start("ordre"));
  expect(bench.state).toMatchObject({
    status: "failed",
    error: { code: "unknown_orchestration", details: { name: "ordre", names: ["order"] } },
  });
});

scenario("also when a signal was there first", original, async (bench) => {
  await bench.turn(signal("word"));
  await bench.turn(start("ordre"), signal("word"));
  expect(bench.state).toMatchObject({ status: "failed", error: { code: "unknown_orchestration" } });
});

test("a running one whose code was lost by a deployment waits for it", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy({ charge });
  expect(bench.fault).toMatchObject({ code: "unknown_orchestration" });
  await bench.turn(completed(2, "paid"));
  await bench.deploy(original);
  await bench.turn(signal("word", 1));
  expect(bench.output).toMatchObject({ paid: "paid", word: 1 });
});

test("one that was parked at its start and then lost its code waits too", async () => {
  const bench = new Bench(version(() => new Promise(() => undefined)));
  await bench.turn(start("order"));
  await bench.deploy({ charge });
  await bench.turn(wake());
  expect(bench.state.status).toBe("running");
  expect(bench.fault?.code).toBe("unknown_orchestration");
  await bench.deploy(version(async () => "mended"));
  await bench.turn(wake());
  expect(bench.output).toBe("mended");
});

const withPatch = version(async (ctx) => {
  if (ctx.patched("refund-first")) await ctx.run(refund, 1);
  await ctx.run(charge, 1);
  return [ctx.patched("refund-first"), await ctx.waitForSignal("word")];
});

scenario("a patch is marked by new instances", withPatch, async (bench) => {
  await bench.turn(start("order"));
  expect(bench.kinds).toEqual(["instance.started", "patch.marked", "activity.scheduled"]);
  await bench.turn(completed(bench.task("refund")));
  await bench.turn(completed(bench.task("charge")));
  await bench.turn(signal("word", 1));
  expect(bench.output).toEqual([true, 1]);
});

test("old instances go their old way with the patched code", async () => {
  const bench = new Bench(original);
  await bench.turn(start("order"));
  await bench.deploy(withPatch);
  expect(bench.fault).toBeUndefined();
  await bench.turn(completed(bench.task("charge")));
  await bench.reload();
  await bench.turn(signal("word", 1));
  expect(bench.output).toEqual([false, 1]);
});

test("a patch taken out again parks the instances that have its mark", async () => {
  const bench = new Bench(withPatch);
  await bench.turn(start("order"));
  await bench.deploy(changed);
  expect(bench.fault?.message).toContain('history has patch "refund-first"');
});

const strict = {
  strict: defineOrchestration("strict", {
    input: z.object({ n: z.number().transform((n) => n * 2) }),
    output: z.object({ twice: z.number() }),
    async run(_ctx, { n }) {
      return n > 100 ? ({ wrong: n } as never) : { twice: n };
    },
  }),
};

scenario("input is parsed for the code", strict, async (bench) => {
  await bench.turn(start("strict", { n: 4 }));
  expect(bench.output).toEqual({ twice: 8 });
});

scenario("invalid input fails with its path", strict, async (bench) => {
  await bench.turn(start("strict", { n: "four" }));
  expect(bench.state).toMatchObject({
    status: "failed",
    error: { code: "invalid_input", details: { issues: [{ path: "n" }] } },
  });
});

scenario("invalid output fails with its path", strict, async (bench) => {
  await bench.turn(start("strict", { n: 400 }));
  expect(bench.state).toMatchObject({ status: "failed", error: { code: "invalid_output" } });
});

const endings: [string, () => unknown, object][] = [
  [
    "a string",
    () => {
      throw "just text";
    },
    { code: "thrown_value", message: 'threw "just text"' },
  ],
  [
    "undefined",
    () => {
      throw undefined;
    },
    { code: "thrown_value" },
  ],
  [
    "an error with a cause",
    () => {
      throw new Error("outer", { cause: new TypeError("inner") });
    },
    { message: "outer", cause: { code: "TypeError" } },
  ],
  ["something that cannot be returned", () => 1n, { code: "not_serialisable" }],
  [
    "an error nobody can read",
    () => {
      throw Object.defineProperty(new Error("x"), "message", {
        get: () => {
          throw new Error("no");
        },
      });
    },
    {},
  ],
];
for (const [what, act, error] of endings) {
  test(`code that ends with ${what} ends or parks; the process does not`, async () => {
    const bench = new Bench(version(async () => act()));
    await bench.turn(start("order"));
    if (bench.state.status === "failed") expect(bench.state.error).toMatchObject(error);
    else expect(bench.fault?.kind).toBe("bug");
  });
}

const caller = version(async (ctx) => {
  const session = await ctx.openSession({ id: "s", onLost: "fail" });
  const failed = await session.run(charge, 1).then(
    () => "done",
    (error: { code?: string }) => error.code,
  );
  return [failed, await ctx.waitForSignal("word")];
});
// Back again, the code finds its session lost and asks for nothing, so that nothing records that it has looked. A copy
// built from history looks later, together with the facts of the next commit: both must find the same session.
scenario(
  "code that looked without recording anything looks again with the next facts",
  caller,
  async (bench) => {
    await bench.turn(start("order"));
    await bench.deploy({});
    await bench.turn(activated("s", held(1, 2)), lost("s", held(1, 2)));
    await bench.deploy(caller);
    expect((await bench.turn(wake())).events).toEqual([]);
    await bench.turn(activated("s", held(2, 3), { warm: true }));
    await bench.turn(completed(bench.task("charge"), 1, { epoch: 3 }));
    await bench.turn(signal("word", "now"));
    expect(bench.output).toEqual(["done", "now"]);
  },
);
