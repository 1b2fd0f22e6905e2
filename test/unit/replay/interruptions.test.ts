/** What an interruption of a call is, which calls it counts against, and what the recovery options may say. */
import { expect, test } from "vitest";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  type OpenSessionOptions,
} from "../../../shared/definitions/index.ts";
import { Bench, scenario } from "../../support/worlds/instance-bench.ts";
import {
  activated,
  completed,
  failed,
  held,
  lost,
  start,
  stateMissing,
  wake,
} from "../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => 0 });
const load = defineActivity("load", { run: async () => 0 });
const chat = defineSession("chat", {
  init: () => ({}),
  calls: { say: call({ run: (_s: object, n: number) => n }) },
});
const wide = defineSession("wide", {
  concurrency: 2,
  init: () => ({}),
  calls: { say: call({ run: (_s: object, n: number) => n }) },
});

const told = (result: Promise<unknown>) =>
  result.catch((error) => ({ code: error.code, cause: error.cause?.code }));

const plain = {
  work,
  plain: defineOrchestration("plain", {
    run: async (ctx) => await told(ctx.run(work, undefined, { retry: { maxAttempts: 2, initialDelay: 50 } })),
  }),
};

const sessionLost = { code: "session_lost", message: "somebody else's", retryable: true };

scenario("defect 33: only a task on a session can be interrupted by a loss", plain, async (bench) => {
  await bench.turn(start("plain"));
  const of = bench.task("work");
  const { events } = await bench.turn(failed(of, sessionLost));
  expect(events).toMatchObject([{ kind: "activity.attempt_failed", retryAt: bench.now + 50 }]);
  expect(bench.state.tasks.get(of)).toMatchObject({ attempt: 2, interruptions: 0 });
  await bench.turn(failed(of, sessionLost, { attempt: 2 }));
  expect(bench.output).toMatchObject({ code: "session_lost" });
});

const opens = (type: typeof chat | typeof wide, options: OpenSessionOptions<undefined>, calls: number) => ({
  type,
  work,
  load,
  opens: defineOrchestration("opens", {
    async run(ctx) {
      const session = await ctx.openSession(type, { id: "s", ...options });
      return await Promise.all(Array.from({ length: calls }, (_, n) => told(session.say(n))));
    },
  }),
});

const own = {
  chat,
  own: defineOrchestration("own", {
    async run(ctx) {
      const session = await ctx.openSession(chat, { id: "s", onLost: "reclaim" });
      return await told(session.say(1, { retry: { maxAttempts: 2, initialDelay: 50 } }));
    },
  }),
};

scenario(
  "defect 33: a call's own error of that code counts as a failure, not as a loss",
  own,
  async (bench) => {
    await bench.turn(start("own"));
    await bench.turn(activated("s", held(1)));
    const of = bench.task("say");
    await bench.turn(failed(of, sessionLost, { epoch: 10 }));
    expect(bench.state.tasks.get(of)).toMatchObject({ attempt: 2, interruptions: 0 });
    await bench.turn(failed(of, sessionLost, { epoch: 10, attempt: 2 }));
    expect(bench.output).toMatchObject({ code: "session_lost" });
  },
);

const sent = (turn: { effects: readonly { kind: string }[] }): number[] =>
  turn.effects.flatMap((effect) =>
    effect.kind === "call" && "task" in effect ? [(effect as { task: { id: number } }).task.id] : [],
  );

const reclaims = { onLost: "reclaim" as const, recovery: { maxAutoRetries: 2 } };

scenario(
  "defect 34: a call that kills its holders fails alone as poisoned; calls that never began go on",
  opens(chat, reclaims, 3),
  async (bench) => {
    await bench.turn(start("opens"));
    await bench.turn(activated("s", held(1)));
    const [bad = 0, good = 0, last = 0] = bench.open("say");
    for (const n of [1, 2, 3]) {
      await bench.turn(lost("s", held(n)));
      const next = await bench.turn(activated("s", held(n + 1)));
      // While the call that was running is under suspicion, it is tried alone.
      expect(sent(next)).toEqual(n < 3 ? [bad] : [good, last]);
    }
    const on = { epoch: 40, attempt: 4 };
    await bench.turn(completed(good, "good", on), completed(last, "last", on));
    expect(bench.output).toEqual([{ code: "poisoned", cause: "session_lost" }, "good", "last"]);
  },
);

scenario(
  "defect 34: a holder that gives up by itself says which calls had begun",
  opens(wide, reclaims, 3),
  async (bench) => {
    await bench.turn(start("opens"));
    await bench.turn(activated("s", held(1)));
    const [first = 0, second = 0, third = 0] = bench.open("say");
    await bench.turn(lost("s", held(1), "crashed", undefined, [{ of: second, attempt: 1 }]));
    const strikes = [first, second, third].map((of) => bench.state.tasks.get(of)?.strikes);
    expect(strikes).toEqual([0, 1, 0]);
  },
);

scenario(
  "defect 34: with concurrency, all that may have run together are suspected",
  opens(wide, reclaims, 3),
  async (bench) => {
    await bench.turn(start("opens"));
    await bench.turn(activated("s", held(1)));
    const [first = 0, second = 0, third = 0] = bench.open("say");
    await bench.turn(lost("s", held(1)));
    const strikes = [first, second, third].map((of) => bench.state.tasks.get(of)?.strikes);
    expect(strikes).toEqual([1, 1, 0]);
    // Calls of such a type may wait for each other: none is kept back.
    expect(sent(await bench.turn(activated("s", held(2))))).toEqual([first, second, third]);
  },
);

scenario(
  "defect 34: a call whose suspect before it was answered is sent then",
  opens(chat, reclaims, 2),
  async (bench) => {
    await bench.turn(start("opens"));
    await bench.turn(activated("s", held(1)));
    const [first = 0, second = 0] = bench.open("say");
    await bench.turn(lost("s", held(1)));
    expect(sent(await bench.turn(activated("s", held(2))))).toEqual([first]);
    expect(sent(await bench.turn(completed(first, 1, { epoch: 20, attempt: 2 })))).toEqual([second]);
    await bench.turn(completed(second, 2, { epoch: 20, attempt: 2 }));
    expect(bench.output).toEqual([1, 2]);
  },
);

scenario(
  "defect 34: planned losses never use up a retry, however many there were",
  opens(chat, { onLost: "reclaim", recovery: { maxAutoRetries: 1 } }, 1),
  async (bench) => {
    await bench.turn(start("opens"));
    await bench.turn(activated("s", held(1)));
    for (const n of [1, 2, 3]) {
      await bench.turn(lost("s", held(n), "drained"));
      await bench.turn(activated("s", held(n + 1)));
    }
    await bench.turn(lost("s", held(4)));
    await bench.turn(activated("s", held(5)));
    await bench.turn(completed(bench.task("say"), "done", { epoch: 50, attempt: 5 }));
    expect(bench.output).toEqual(["done"]);
  },
);

for (const onLost of ["fail", "reclaim", "restore"] as const) {
  const neverRuns = { onLost, recovery: { rebuild: { activity: load } } };
  const app = opens(chat, neverRuns, 1);
  test(`defect 36: recovery.rebuild with onLost: "${onLost}" is refused where it is given`, async () => {
    const bench = new Bench(app);
    await bench.turn(start("opens"));
    expect(bench.state.error).toMatchObject({
      code: "invalid_option",
      message: expect.stringMatching(/recovery\.rebuild .*onLost: "rebuild"/),
    });
    expect(bench.kinds).not.toContain("session.opened");
    await bench.reload();
    expect(bench.fault).toBeUndefined();
  });
}

test("defect 36: a history that has such a session is replayed as it was", async () => {
  const before = opens(chat, { onLost: "reclaim" }, 1);
  const after = opens(chat, { onLost: "reclaim", recovery: { rebuild: { activity: load } } }, 1);
  const bench = new Bench(before);
  await bench.turn(start("opens"));
  await bench.deploy(after);
  await bench.turn(activated("s", held(1)));
  expect(bench.fault).toBeUndefined();
  await bench.turn(completed(bench.task("say"), 7, { epoch: 10 }));
  expect(bench.output).toEqual([7]);
});

const cold = {
  work,
  load,
  cold: defineOrchestration("cold", {
    async run(ctx) {
      const recovery = { rebuild: { activity: load }, maxAutoRetries: 1 };
      const session = await ctx.openSession({ id: "s", recovery });
      return await Promise.all([1, 2].map((n) => told(session.run(work, n as never))));
    },
  }),
};

scenario("defect 39: the first cold start does not use up maxAutoRetries", cold, async (bench) => {
  await bench.turn(start("cold"));
  await bench.turn(activated("s", held(1)));
  const [a = 0, b = 0] = bench.open("work");
  // There is no state yet: both calls find none, one rebuild makes it.
  await bench.turn(stateMissing(a, { epoch: 10 }), stateMissing(b, { epoch: 10 }));
  await bench.turn(completed(bench.task("load"), "ok", { epoch: 10 }));
  expect([a, b].map((of) => bench.state.tasks.get(of)?.strikes)).toEqual([0, 0]);
  // Missing again after that is the one retry they have.
  await bench.turn(stateMissing(a, { epoch: 10, attempt: 2 }));
  await bench.turn(completed(bench.task("load"), "ok", { epoch: 10 }));
  await bench.turn(completed(b, "b", { epoch: 10, attempt: 2 }));
  await bench.turn(stateMissing(a, { epoch: 10, attempt: 3 }));
  await bench.turn(wake());
  expect(bench.output).toEqual([{ code: "session_lost", cause: undefined }, "b"]);
});

test("while a process of generation 1 lives, nothing is written that it cannot read", async () => {
  const bench = new Bench(opens(wide, reclaims, 2), "live", { generation: 1 });
  await bench.turn(start("opens"));
  await bench.turn(activated("s", held(1)));
  await bench.turn(lost("s", held(1)));
  expect(bench.last("session.opened").options).not.toHaveProperty("concurrency");
  expect(bench.last("activity.attempt_failed")).not.toHaveProperty("interruption");
});
