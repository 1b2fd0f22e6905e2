import { expect, test } from "vitest";
import type { OpenSessionOptions } from "../../../../shared/definitions/index.ts";
import { nextDeadline } from "../../../../shared/replay/index.ts";
import { Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import {
  activated,
  claimed,
  completed,
  held,
  initFailed,
  lost,
  parked,
  refused,
  start,
  wake,
} from "../../../support/worlds/instance-messages.ts";

import { add, config, flow, model, other } from "./model-flow.ts";

const asks = flow(async (ctx) => {
  const session = await ctx.openSession(model, { config });
  const { id, state, workerId, epoch } = session.info;
  return { answer: await session.ask("why"), id, state, workerId, epoch };
});

scenario("a session is opened, claimed, activated and called", asks, async (bench) => {
  const first = await bench.turn(start("flow"));
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
    session: { type: "model", config: { json: config } },
  });
  const took = await bench.turn(claimed("i1-s1", held(1)));
  expect(bench.phase("i1-s1")).toBe("claimed");
  expect(took.effects).toEqual([{ kind: "register-session", sessionId: "i1-s1", held: held(1) }]);
  const { effects } = await bench.turn(activated("i1-s1", held(1)));
  expect(bench.phase("i1-s1")).toBe("active");
  expect(effects.map((effect) => effect.kind)).toEqual(["register-session", "unschedule", "call"]);
  expect(effects.at(-1)).toMatchObject({ on: held(1), task: { name: "ask", sentEpoch: 10 } });
  const end = await bench.turn(completed(bench.task("ask"), "because", { epoch: 10 }));
  expect(bench.output).toEqual({
    answer: "because",
    id: "i1-s1",
    state: "active",
    workerId: "w1",
    epoch: 10,
  });
  expect(bench.kinds.slice(-2)).toEqual(["session.closed", "instance.completed"]);
  expect(end.effects.map((effect) => effect.kind)).toEqual(["close-session", "register-session", "summary"]);
});

scenario("activated may come without claimed, and each only once", asks, async (bench) => {
  await bench.turn(start("flow"));
  const on = held(1);
  const { verdicts, events } = await bench.turn(
    activated("i1-s1", on),
    activated("i1-s1", on),
    claimed("i1-s1", on),
    initFailed("i1-s1", 1),
    refused("i1-s1", 1),
  );
  expect(verdicts).toEqual(["facts", "repeated", "repeated", "fenced", "fenced"]);
  expect(events.slice(0, 2), "the history has both").toMatchObject([
    { kind: "session.claimed", on },
    { kind: "session.activated", on },
  ]);
});

scenario("reports of other attachments and of unknown sessions change nothing", asks, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(claimed("i1-s1", held(1)));
  const { verdicts } = await bench.turn(
    claimed("i1-s1", held(2)),
    activated("i1-s1", held(2)),
    activated("i1-s1", held(1, 99)),
    initFailed("i1-s1", 2),
    lost("i1-s1", held(2)),
    parked("i1-s1", held(1)),
    activated("nobody", held(1)),
  );
  expect(verdicts).toEqual(["fenced", "fenced", "fenced", "fenced", "fenced", "fenced", "unknown"]);
  expect(bench.commits).toHaveLength(2);
});

const opensAndRuns = flow(async (ctx) => {
  const [session, sum] = await Promise.all([ctx.openSession(model, { config }), ctx.run(add, 1)]);
  return [session.id, sum];
});

scenario("what is issued beside an opening keeps its event id", opensAndRuns, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(completed(bench.task("add"), 7));
  await bench.turn(activated("i1-s1", held(1)));
  expect(bench.output).toEqual(["i1-s1", 7]);
});

const lazily = flow(async (ctx) => {
  const session = await ctx.openSession(model, { config, lazy: true });
  await ctx.run(add, 1);
  return await Promise.all([session.ask("a"), session.ask("b"), ctx.run(add, 2)]);
});

scenario("a lazy session is asked for at its first call, once", lazily, async (bench) => {
  await bench.turn(start("flow"));
  expect(bench.phase("i1-s1")).toBe("parked");
  expect(bench.kinds).not.toContain("session.requested");
  expect(nextDeadline(bench.state)).toBeUndefined();
  const { effects } = await bench.turn(completed(bench.task("add"), 1));
  expect(effects.map((effect) => effect.kind)).toEqual(["task", "schedule", "register-session", "claim"]);
  const sent = await bench.turn(activated("i1-s1", held(1)));
  expect(sent.effects.filter((effect) => effect.kind === "call")).toHaveLength(2);
  const [a, b] = bench.open("ask") as [number, number];
  await bench.turn(completed(b, "B", { epoch: 10 }), completed(a, "A", { epoch: 10 }));
  await bench.turn(completed(bench.task("add"), 2));
  expect(bench.output).toEqual(["A", "B", 2]);
});

const twice = flow(async (ctx) => {
  const [one, two] = await Promise.all([
    ctx.openSession(model, { id: "same", config }),
    ctx.openSession(model, { id: "same", config }),
  ]);
  const three = await ctx.openSession(model, { id: "same", config });
  return [one.id, two.id, three.id, three.info.epoch];
});

scenario("the same id is the same session", twice, async (bench) => {
  await bench.turn(start("flow"));
  expect(bench.kinds.filter((kind) => kind === "session.opened")).toHaveLength(1);
  await bench.turn(activated("same", held(1)));
  expect(bench.output).toEqual(["same", "same", "same", 10]);
});

const several = flow(async (ctx) => {
  const named = ctx.openSession(model, { id: "x-s2", config, lazy: true });
  const sessions = [await ctx.openSession({ lazy: true }), await named];
  sessions.push(await ctx.openSession(model, { config, lazy: true }), await ctx.openSession({ lazy: true }));
  return sessions.map((session) => session.id);
});

scenario("derived ids are counted per instance and never another session's", several, async (bench) => {
  await bench.turn(start("flow"));
  expect(bench.output).toEqual(["i1-s1", "x-s2", "i1-s2", "i1-s3"]);
});

const mismatch = flow(async (ctx) => {
  await ctx.openSession(model, { id: "same", config, lazy: true });
  const inOneTurn = await ctx.openSession(other, { id: "same" }).catch((error) => error.message);
  await ctx.run(add, 0);
  const later = await ctx.openSession({ id: "same" }).catch((error) => [error.name, error.code]);
  return { inOneTurn, later };
});

scenario("an id that is open with another type is refused", mismatch, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(completed(bench.task("add")));
  expect(bench.output).toEqual({
    inOneTurn: 'session same is open with type "model", not "other"',
    later: ["SessionUnusable", "session_unusable"],
  });
});

/** Opens one session and tells what came of it. */
const opening = (options: OpenSessionOptions<{ size: number }>) =>
  flow(async (ctx) => {
    try {
      const session = await ctx.openSession(model, { id: "s", config, ...options });
      return { epoch: session.info.epoch };
    } catch (error) {
      const { name, code, message } = error as Record<string, unknown>;
      return { name, code, message };
    }
  });

scenario("an id that belongs to another instance cannot be had", opening({}), async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(refused("s", 1));
  expect(bench.output).toMatchObject({ code: "session_id_taken", message: "belongs to another" });
});

scenario("a failed init is tried again elsewhere, within the same deadline", opening({}), async (bench) => {
  await bench.turn(start("flow"));
  const deadlineAt = bench.now + 30_000;
  for (const attachment of [1, 2]) {
    const { events } = await bench.turn(
      claimed("s", held(attachment)),
      initFailed("s", attachment, `worker ${attachment}`),
    );
    expect(events.slice(1)).toMatchObject([
      { kind: "session.init_failed", attachment },
      { kind: "session.requested", attachment: attachment + 1, deadlineAt },
    ]);
  }
  await bench.turn(activated("s", held(3)));
  expect(bench.output).toEqual({ epoch: 30 });
});

scenario("after maxInitAttempts the opening has failed", opening({ maxInitAttempts: 2 }), async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(initFailed("s", 1));
  const { effects } = await bench.turn(initFailed("s", 2, "out of memory"));
  expect(bench.output).toEqual({
    name: "SessionInitFailed",
    code: "session_init_failed",
    message: "session s of type model: init failed 2 times: out of memory",
  });
  expect(effects).toContainEqual(expect.objectContaining({ kind: "unschedule" }));
});

scenario(
  "an init that kills its workers counts as failed",
  opening({ maxInitAttempts: 3 }),
  async (bench) => {
    await bench.turn(start("flow"));
    await bench.turn(claimed("s", held(1)), lost("s", held(1), "crashed", "exit code 139"));
    expect(bench.phase("s")).toBe("opening");
    await bench.turn(lost("s", { attachment: 2 }, "expired"));
    await bench.turn(claimed("s", held(3)), lost("s", held(3), "crashed", "exit code 139"));
    expect(bench.output).toMatchObject({
      code: "session_init_failed",
      message: expect.stringContaining("139"),
    });
  },
);

scenario("nobody took it: the timeout says why", opening({ creationTimeout: "5s" }), async (bench) => {
  await bench.turn(start("flow"));
  expect(nextDeadline(bench.state)).toBe(bench.now + 5000);
  bench.advance(4980);
  expect((await bench.turn(wake())).verdicts, "not early").toEqual(["late"]);
  const { effects } = await bench.turn(wake());
  expect(bench.output).toEqual({
    name: "SessionCreationTimeout",
    code: "session_creation_timeout",
    message: "session s of type model found no worker within 5000 ms: no worker with tag gpu",
  });
  expect(effects.map((effect) => effect.kind)).toContain("withdraw-claim");
});

scenario(
  "somebody took it but its init is slow: that is why",
  opening({ creationTimeout: "5s" }),
  async (bench) => {
    await bench.turn(start("flow"));
    await bench.turn(claimed("s", held(1)));
    bench.advance(5000);
    const { effects } = await bench.turn(wake());
    expect(bench.output).toMatchObject({ message: expect.stringContaining("init is still running on w1") });
    expect(effects).toContainEqual(expect.objectContaining({ kind: "close-session", on: held(1) }));
    expect((await bench.turn(activated("s", held(1)))).verdicts).toEqual(["ended"]);
  },
);

const token = flow(async (ctx) => {
  const first = await ctx.openSession(model, { config });
  const made = first.token();
  await first.close();
  const second = await ctx.recreateSession(made, model, { config });
  return second.id;
});

scenario("a token opens a new session on the same resource", token, async (bench) => {
  await bench.turn(start("flow"));
  const { effects } = await bench.turn(activated("i1-s1", held(1)));
  expect(effects).toContainEqual(
    expect.objectContaining({
      kind: "claim",
      session: expect.objectContaining({
        sessionId: "i1-s2",
        options: expect.objectContaining({ resourceId: "resource-w1" }),
      }),
    }),
  );
  await bench.turn(refused("i1-s2", 1, { code: "session_resource_gone" }));
  expect(bench.state).toMatchObject({ status: "failed", error: { code: "session_resource_gone" } });
});

test("two instances never derive the same id", async () => {
  const again = flow(async (ctx) => {
    const session = await ctx.openSession({ lazy: true });
    if (ctx.execution === 1 && ctx.instanceId === "a") {
      await session.close();
      ctx.continueAsNew(0);
    }
    return session.id;
  });
  const ids = await Promise.all(
    ["a", "a-2", "a-s1"].map(async (instanceId) => {
      const bench = new Bench(again, "live", { instanceId });
      await bench.turn(start("flow"));
      return bench.output;
    }),
  );
  expect(new Set(ids).size).toBe(3);
});
