/** An instance that borrows members of exclusive pools: it waits for one, has it for itself, and gives it back. */
import { expect } from "vitest";
import { EventId, InstanceId, Lending, SessionState } from "../../../../schemas/index.ts";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../../shared/definitions/index.ts";
import { type Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import {
  activated,
  cancel,
  closedByOwner,
  completed,
  held,
  lent,
  lost,
  refused,
  signal,
  start,
  terminate,
} from "../../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => 0 });
const model = defineSession("model", {
  init: () => ({}),
  calls: { ask: call({ run: (_state, n: number) => n }) },
});
const exclusive = { sharing: "exclusive" as const };

const borrows = defineOrchestration("borrows", {
  async run(ctx) {
    await using member = await ctx.usePool(model, exclusive);
    const first = await member.ask(1);
    const beside = await member.run(work, null);
    await ctx.waitForSignal("go");
    return { id: member.id, state: member.info.state, epoch: member.info.epoch, first, beside };
  },
});
const twice = defineOrchestration("twice", {
  async run(ctx) {
    const first = await ctx.usePool(model, exclusive);
    const open = first.ask(1).catch((error) => error.code);
    await ctx.waitForSignal("next");
    await first.close();
    await first.close();
    const second = await ctx.usePool(model, exclusive);
    const after = await first.ask(2).catch((error) => `${error.code}: ${error.message}`);
    const token = await Promise.resolve()
      .then(() => first.token())
      .catch((error) => error.code);
    const got = await second.ask(3);
    return { open: await open, after, token, state: first.info.state, now: second.info.state, got };
  },
});
const impatient = defineOrchestration("impatient", {
  async run(ctx) {
    const got = await Promise.race([
      ctx.usePool(model, exclusive).then((member) => member.id),
      ctx.waitForSignal("enough").then(() => "gave up"),
    ]);
    const raced = await Promise.race([ctx.usePool(model, exclusive), ctx.waitForSignal<string>("enough")]);
    await ctx.waitForSignal("end");
    return [got, typeof raced === "string" ? raced : raced.id];
  },
});
const two = defineOrchestration("two", {
  async run(ctx) {
    await using a = await ctx.usePool(model, exclusive);
    await using b = await ctx.usePool(model, exclusive);
    return await Promise.all([a.ask(1), b.ask(2)]);
  },
});
const generations = defineOrchestration("generations", {
  async run(ctx, left: number) {
    const member = await ctx.usePool(model, exclusive);
    await member.ask(left);
    if (left > 0) ctx.continueAsNew(left - 1);
    return "done";
  },
});
const passesOn = defineOrchestration("passes-on", {
  async run(ctx) {
    const member = await ctx.usePool(model, exclusive);
    const child = ctx.child("kid", 0, { grant: [member] });
    await ctx.waitForSignal("close");
    await member.close();
    return await child;
  },
});
const app = { work, model, borrows, twice, impatient, two, generations, passesOn };

/** A member as its lender knows it, for the latest use of this instance. */
function member(bench: Bench, id: string, number = 1, on = held(1)): SessionState {
  const { poolId, id: of } = bench.last("pool.joined");
  return memberFor(poolId, of, bench.state.execution, id, number, on);
}
const memberFor = (poolId: string, of: number, execution: number, id: string, number: number, on = held(1)) =>
  SessionState.parse({
    ...{ sessionId: id, owner: `pool-${poolId}`, type: "model", openedAt: 0 },
    options: {
      ...{ creationTimeoutMs: 30_000, onLost: "reclaim", maxAutoRetries: 3, maxInitAttempts: 5 },
      ...{ requires: {}, lazy: false, metadata: {} },
    },
    ...{ attachments: on.attachment, initFailures: 0, phase: { kind: "active", on } },
    lending: Lending.parse({
      poolId,
      number,
      to: { instanceId: InstanceId.parse("i1"), execution, of: EventId.parse(of) },
    }),
  });
const leaves = (bench: Bench) => bench.effects.filter((effect) => effect.kind === "leave-pool");
const calls = (bench: Bench) => bench.effects.filter((effect) => effect.kind === "call");

scenario("waits for a member, uses it like a session, gives it back", app, async (bench) => {
  await bench.turn(start("borrows"));
  expect(bench.last("pool.joined").pool).toMatchObject({ type: "model", min: 1, sharing: "exclusive" });
  expect(bench.effects).toContainEqual(expect.objectContaining({ kind: "join-pool" }));
  expect(bench.open("ask")).toEqual([]);
  await bench.turn(lent(member(bench, "m1")));
  expect(calls(bench)).toMatchObject([{ task: { name: "ask" }, on: { epoch: 10 } }]);
  await bench.turn(completed(bench.task("ask"), "a", { epoch: 10 }));
  await bench.turn(completed(bench.task("work"), "b", { epoch: 10 }));
  await bench.turn(signal("go"));
  expect(bench.output).toEqual({ id: "m1", state: "active", epoch: 10, first: "a", beside: "b" });
  expect(bench.kinds.slice(-2)).toEqual(["pool.left", "instance.completed"]);
  expect(leaves(bench), "once, though the instance ended too").toHaveLength(1);
  expect(bench.kinds, "the member is not ours to close").not.toContain("session.closed");
});

scenario("told twice, too late or for somebody else, a member changes nothing", app, async (bench) => {
  expect((await bench.turn(lent(memberFor("p", 1, 1, "m0", 1)))).verdicts, "before the start").toEqual([
    "late",
  ]);
  await bench.turn(start("borrows"));
  const { poolId, id } = bench.last("pool.joined");
  const strange = [
    lent(memberFor(poolId, id + 7, 1, "m1", 1)),
    lent(memberFor(poolId, id, 2, "m1", 1)),
    lent({ ...member(bench, "m1"), lending: undefined }),
  ];
  expect((await bench.turn(...strange)).verdicts).toEqual(["late", "late", "late"]);
  const mine = lent(member(bench, "m1"));
  expect((await bench.turn(mine, mine)).verdicts).toEqual(["facts", "repeated"]);
  expect((await bench.turn(lent(member(bench, "m2", 2)))).verdicts).toEqual(["repeated"]);
  await bench.turn(completed(bench.task("ask"), "a", { epoch: 10 }));
  await bench.turn(completed(bench.task("work"), "b", { epoch: 10 }));
  await bench.turn(signal("go"));
  expect((await bench.turn(mine)).verdicts).toEqual(["ended"]);
});

scenario("a handle that was given back is over, though the member may be ours again", app, async (bench) => {
  await bench.turn(start("twice"));
  await bench.turn(lent(member(bench, "m1", 1)));
  const open = bench.task("ask");
  const { effects } = await bench.turn(signal("next"));
  // The member goes on living: its call is called off, not closed away.
  expect(effects).toContainEqual(
    expect.objectContaining({
      kind: "cancel-task",
      task: expect.objectContaining({ id: open }),
      on: held(1),
    }),
  );
  expect(bench.state.sessions.has("m1")).toBe(false);
  await bench.turn(lent(member(bench, "m1", 2)));
  await bench.turn(completed(bench.task("ask"), "again", { epoch: 10 }));
  expect(bench.output).toEqual({
    ...{ open: "cancelled", after: expect.stringMatching(/^session_unusable: member m1 .* given back/) },
    ...{ token: "session_unusable", state: "closed", now: "active", got: "again" },
  });
});

scenario("who stops waiting has left, also when the member came in the same moment", app, async (bench) => {
  await bench.turn(start("impatient"));
  const first = bench.last("pool.joined");
  await bench.turn(signal("enough", "enough"));
  expect(leaves(bench).map((effect) => effect.id)).toEqual([first.id]);
  const second = bench.last("pool.joined");
  expect(second.id).not.toBe(first.id);
  await bench.turn(signal("enough", "enough"), lent(member(bench, "m1")));
  expect(leaves(bench).at(-1)).toEqual({ kind: "leave-pool", poolId: second.poolId, id: second.id });
  expect(bench.state.sessions.has("m1")).toBe(false);
  await bench.turn(signal("end"));
  expect(bench.output).toEqual(["gave up", "enough"]);
  expect(leaves(bench).map((effect) => effect.id)).toEqual([first.id, second.id]);
});

scenario("two uses are two members", app, async (bench) => {
  await bench.turn(start("two"));
  await bench.turn(lent(member(bench, "m1", 1)));
  await bench.turn(lent(member(bench, "m2", 2, held(1, 20))));
  const [a, b] = bench.open("ask");
  await bench.turn(completed(a ?? 0, "a", { epoch: 10 }), completed(b ?? 0, "b", { epoch: 20 }));
  expect(bench.output).toEqual(["a", "b"]);
  expect(leaves(bench)).toHaveLength(2);
});

scenario("a lost member is claimed anew for its borrower, and its call repeated", app, async (bench) => {
  await bench.turn(start("borrows"));
  await bench.turn(lent(member(bench, "m1")));
  await bench.turn(lost("m1", { attachment: 1, epoch: 10 }));
  expect(bench.phase("m1")).toBe("opening");
  expect(
    bench.effects.filter(({ kind }) => kind === "claim" || kind === "register-session"),
    "its lender asks for workers",
  ).toEqual([]);
  await bench.turn(activated("m1", held(2)));
  expect(calls(bench).map(({ on }) => on.epoch)).toEqual([10, 20]);
  expect((await bench.turn(completed(bench.task("ask"), "old", { epoch: 10 }))).verdicts).toEqual(["fenced"]);
  await bench.turn(completed(bench.task("ask"), "a", { epoch: 20, attempt: 2 }));
  await bench.turn(completed(bench.task("work"), "b", { epoch: 20 }));
  await bench.turn(signal("go"));
  expect(bench.output).toMatchObject({ first: "a", epoch: 20 });
});

for (const end of [refused("m1", 1), closedByOwner("m1")]) {
  scenario(
    `a member that is no more (${JSON.stringify(end).slice(-60)}) fails what waits for it`,
    app,
    async (bench) => {
      await bench.turn(start("borrows"));
      await bench.turn(lent(member(bench, "m1")));
      await bench.turn(end);
      expect(bench.state.status).toBe("failed");
      expect(leaves(bench)).toHaveLength(1);
    },
  );
}

for (const end of [cancel("enough"), terminate("enough")]) {
  for (const when of ["waiting", "having"]) {
    scenario(`an instance ended by ${end.kind} while ${when} a member leaves`, app, async (bench) => {
      await bench.turn(start("borrows"));
      if (when === "having") await bench.turn(lent(member(bench, "m1")));
      await bench.turn(end);
      expect(leaves(bench)).toHaveLength(1);
      expect(bench.effects.filter(({ kind }) => kind === "cancel-task")).toHaveLength(
        when === "having" ? 1 : 0,
      );
      expect(bench.effects.filter(({ kind }) => kind === "close-session")).toEqual([]);
    });
  }
}

scenario("continue-as-new gives it back, and the next execution asks anew", app, async (bench) => {
  await bench.turn(start("generations", 1));
  await bench.turn(lent(member(bench, "m1", 1)));
  await bench.turn(completed(bench.task("ask"), 1, { epoch: 10 }));
  expect(bench.state.execution).toBe(2);
  expect([...bench.state.sessions]).toEqual([]);
  expect((await bench.turn(lent(memberFor("p", 2, 1, "m1", 1)))).verdicts, "of the life before").toEqual([
    "late",
  ]);
  await bench.turn(lent(member(bench, "m1", 2)));
  await bench.turn(completed(bench.task("ask"), 1, { epoch: 10, execution: 2 }));
  expect(bench.output).toBe("done");
  expect(leaves(bench)).toHaveLength(2);
});

scenario("a child it was granted to hears what becomes of it", app, async (bench) => {
  await bench.turn(start("passes-on"));
  await bench.turn(lent(member(bench, "m1")));
  const told = (kind: string) =>
    bench.effects.filter((effect) => effect.kind === "tell-grantees" && effect.session.phase.kind === kind);
  await bench.turn(lost("m1", { attachment: 1, epoch: 10 }));
  expect(told("lost")).toMatchObject([{ to: ["i1-c1"], epoch: 10 }]);
  await bench.turn(activated("m1", held(2)));
  expect(told("active")).toMatchObject([{ to: ["i1-c1"], epoch: 20 }]);
  await bench.turn(signal("close"));
  expect(told("closed")).toMatchObject([{ to: ["i1-c1"] }]);
});
