import { expect } from "vitest";
import { SessionState } from "../../../../schemas/index.ts";
import {
  defineActivity,
  defineOrchestration,
  type OpenSessionOptions,
} from "../../../../shared/definitions/index.ts";
import { type Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import {
  activated,
  cancel,
  childDone,
  closedByOwner,
  completed,
  held,
  lost,
  parked,
  refused,
  signal,
  start,
  startGranted,
  stateMissing,
  wanted,
} from "../../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => 0 });
const load = defineActivity("load", { run: async () => 0 });

const parent = (options: OpenSessionOptions<undefined> = {}) => ({
  work,
  load,
  parent: defineOrchestration("parent", {
    async run(ctx) {
      const session = await ctx.openSession({ id: "s", ...options });
      const child = ctx.child("kid", 0, { grant: [session] });
      ctx.child("stranger", 0);
      const what = await ctx.waitForSignal("do");
      if (what === "close") await session.close();
      return await child;
    },
  }),
});

const started = async (bench: Bench) => {
  await bench.turn(start("parent"));
  return await bench.turn(activated("s", held(1)));
};
const told = (effects: readonly { kind: string }[]) =>
  effects.filter((effect) => effect.kind === "tell-grantees");
const kid = { childId: "i1-c1" };

scenario(
  "a child gets the session as it is, and hears what becomes of it",
  parent({ onLost: "reclaim" }),
  async (bench) => {
    const { effects } = await started(bench);
    expect(effects).toContainEqual(
      expect.objectContaining({
        kind: "start-child",
        ...kid,
        grants: [
          expect.objectContaining({ sessionId: "s", owner: "i1", phase: { kind: "active", on: held(1) } }),
        ],
      }),
    );
    expect(effects).toContainEqual(
      expect.objectContaining({ kind: "start-child", childId: "i1-c2", grants: [] }),
    );
    const away = await bench.turn(lost("s", held(1)));
    expect(told(away.effects)).toMatchObject([
      { session: { phase: { kind: "lost", reason: "expired" } }, epoch: 10, to: [kid.childId] },
    ]);
    const back = await bench.turn(activated("s", held(2)));
    expect(told(back.effects)).toMatchObject([
      { session: { phase: { kind: "active", on: held(2) } }, epoch: 20 },
    ]);
    const idle = await bench.turn(parked("s", held(2)));
    expect(told(idle.effects)).toMatchObject([{ session: { phase: { kind: "parked" } }, epoch: 20 }]);
  },
);

scenario("a child may want a parked session", parent(), async (bench) => {
  await started(bench);
  expect((await bench.turn(wanted("s"))).verdicts).toEqual(["repeated"]);
  await bench.turn(parked("s", held(1)));
  const { effects } = await bench.turn(wanted("s"), wanted("s"));
  expect(effects.filter((effect) => effect.kind === "claim")).toHaveLength(1);
  expect(told((await bench.turn(activated("s", held(2)))).effects)).toHaveLength(1);
});

scenario(
  "a rebuilt session is the child's when the rebuild is done",
  parent({ recovery: { rebuild: { activity: load } } }),
  async (bench) => {
    await started(bench);
    await bench.turn(lost("s", held(1)));
    expect(told((await bench.turn(activated("s", held(2)))).effects)).toEqual([]);
    const { effects } = await bench.turn(completed(bench.task("load"), 0, { epoch: 20 }));
    expect(told(effects)).toMatchObject([{ session: { phase: { kind: "active" } }, epoch: 20 }]);
  },
);

scenario("closing tells the child, until the child is done", parent(), async (bench) => {
  await started(bench);
  const { effects } = await bench.turn(signal("do", "close"));
  expect(told(effects)).toMatchObject([{ session: { phase: { kind: "closed" } }, to: [kid.childId] }]);
  const end = await bench.turn(childDone(bench.last("child.scheduled").id - 1, "grown"));
  expect(bench.output).toBe("grown");
  expect(told(end.effects)).toEqual([]);
});

scenario("cancelling the parent cancels the child and closes the session", parent(), async (bench) => {
  await started(bench);
  const { effects } = await bench.turn(cancel());
  expect(effects.map((effect) => effect.kind)).toEqual(
    expect.arrayContaining(["cancel-child", "close-session"]),
  );
});

// The child's side.

const granted = (phase: object, options: object = {}): SessionState =>
  SessionState.parse({
    sessionId: "s",
    owner: "boss",
    type: "bare",
    options: {
      creationTimeoutMs: 30_000,
      onLost: "fail",
      maxAutoRetries: 2,
      maxInitAttempts: 3,
      requires: {},
      lazy: false,
      metadata: {},
      ...options,
    },
    openedAt: 1,
    attachments: 1,
    initFailures: 0,
    phase,
  });
const isActive = { kind: "active", on: held(1) };

const child = {
  work,
  kid: defineOrchestration("kid", {
    async run(ctx) {
      const session = ctx.grantedSession("s");
      const results: unknown[] = [];
      for (;;) {
        const what = await ctx.waitForSignal<string>("do");
        if (what === "end") return { results, state: session.info.state };
        if (what === "close") await session.close();
        else results.push(await session.run(work, what).catch((error) => error.code));
      }
    },
  }),
  nosy: defineOrchestration("nosy", {
    async run(ctx) {
      return ctx.grantedSession("other").id;
    },
  }),
};
const kinds = (effects: readonly { kind: string }[]) => effects.map((effect) => effect.kind);

scenario("a child's calls go straight to the holder; closing is not its business", child, async (bench) => {
  await bench.turn(startGranted("kid", [granted(isActive)]));
  const { effects } = await bench.turn(signal("do", "one"));
  expect(effects).toMatchObject([{ kind: "call", on: held(1) }]);
  await bench.turn(completed(bench.task("work"), 1, { epoch: 10 }));
  const closing = await bench.turn(signal("do", "close"));
  expect(kinds(closing.events)).toEqual(["signal.received"]);
  const end = await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual({ results: [1], state: "active" });
  expect(kinds(end.events)).toEqual(["signal.received", "instance.completed"]);
  expect(kinds(end.effects), "nothing about a session that is another's").toEqual(["summary"]);
});

scenario("a parked one is wanted from its owner", child, async (bench) => {
  await bench.turn(startGranted("kid", [granted({ kind: "parked" })]));
  const { effects, events } = await bench.turn(signal("do", "one"));
  expect(kinds(events)).toEqual(["signal.received", "activity.scheduled"]);
  expect(effects).toMatchObject([{ kind: "want-session", session: { sessionId: "s", owner: "boss" } }]);
  const back = await bench.turn(activated("s", held(2)));
  expect(back.effects).toMatchObject([{ kind: "call", on: held(2) }]);
});

scenario("a call that crossed with the parking is asked for again", child, async (bench) => {
  await bench.turn(startGranted("kid", [granted(isActive)]));
  await bench.turn(signal("do", "one"));
  const { effects, verdicts } = await bench.turn(
    parked("s", held(1, 9)),
    parked("s", held(1)),
    parked("s", held(1)),
  );
  expect(verdicts).toEqual(["repeated", "facts", "repeated"]);
  expect(kinds(effects)).toEqual(["want-session"]);
  await bench.turn(activated("s", held(2)));
  await bench.turn(completed(bench.task("work"), 1, { epoch: 20 }));
  await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual({ results: [1], state: "active" });
});

scenario("one granted while somebody was still at its init", child, async (bench) => {
  const phase = { kind: "claimed", on: held(1), deadlineAt: 9_000_000 };
  await bench.turn(startGranted("kid", [granted(phase)]));
  await bench.turn(signal("do", "one"));
  const { effects } = await bench.turn(activated("s", held(1)));
  expect(effects).toMatchObject([{ kind: "call", on: held(1) }]);
});

scenario("a loss under fail ends the child's calls as the owner's", child, async (bench) => {
  await bench.turn(startGranted("kid", [granted(isActive)]));
  await bench.turn(signal("do", "one"));
  const { effects } = await bench.turn(lost("s", held(1)));
  expect(effects).toEqual([]);
  await bench.turn(signal("do", "two"));
  await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual({ results: ["session_lost", "session_lost"], state: "lost" });
});

scenario("under reclaim they wait, old and new, and the child asks nobody", child, async (bench) => {
  await bench.turn(startGranted("kid", [granted(isActive, { onLost: "reclaim" })]));
  await bench.turn(signal("do", "one"));
  const { effects } = await bench.turn(lost("s", held(1)), lost("s", held(1)));
  expect(effects).toEqual([]);
  expect(bench.phase("s")).toBe("opening");
  expect((await bench.turn(activated("s", held(1)))).verdicts, "an old story").toEqual(["repeated"]);
  await bench.turn(activated("s", held(2)));
  await bench.turn(completed(bench.task("work"), 1, { epoch: 20, attempt: 2 }));
  await bench.turn(lost("s", held(2)));
  await bench.turn(signal("do", "two"));
  await bench.turn(activated("s", held(3)));
  await bench.turn(completed(bench.task("work"), 2, { epoch: 30 }));
  await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual({ results: [1, 2], state: "active" });
});

scenario(
  "closed by its owner, or failed there: the child's calls fail, once and for all",
  child,
  async (bench) => {
    await bench.turn(startGranted("kid", [granted(isActive)]));
    await bench.turn(signal("do", "one"));
    const { verdicts } = await bench.turn(
      closedByOwner("s"),
      closedByOwner("s"),
      refused("s", 1),
      activated("s", held(2)),
    );
    expect(verdicts).toEqual(["facts", "repeated", "repeated", "repeated"]);
    await bench.turn(signal("do", "two"));
    await bench.turn(signal("do", "end"));
    expect(bench.output).toEqual({ results: ["session_unusable", "session_unusable"], state: "failed" });
  },
);

scenario("what was not granted cannot be used", child, async (bench) => {
  await bench.turn(startGranted("nosy", [granted(isActive)]));
  expect(bench.state).toMatchObject({ status: "failed", error: { code: "session_unusable" } });
});

scenario(
  "a granted session comes along with continue-as-new",
  {
    work,
    again: defineOrchestration("again", {
      async run(ctx, { left }: { left: number }): Promise<unknown> {
        const value = await ctx.grantedSession("s").run(work, left);
        if (left > 0) return ctx.continueAsNew({ left: left - 1 });
        return value;
      },
    }),
  },
  async (bench) => {
    await bench.turn(startGranted("again", [granted(isActive)], { left: 1 }));
    await bench.turn(completed(bench.task("work"), 1, { epoch: 10 }));
    await bench.turn(completed(bench.task("work"), 2, { epoch: 10, execution: 2 }));
    expect(bench.output).toBe(2);
  },
);

scenario("a child rebuilds what its own call misses", child, async (bench) => {
  const rebuild = { activity: "load", input: { json: 1 } };
  await bench.turn(startGranted("kid", [granted(isActive, { onLost: "rebuild", rebuild })]));
  await bench.turn(signal("do", "one"));
  await bench.turn(stateMissing(bench.task("work"), { epoch: 10 }));
  const { effects } = await bench.turn(completed(bench.task("load"), 1, { epoch: 10 }));
  expect(kinds(effects)).toEqual(["call"]);
});
