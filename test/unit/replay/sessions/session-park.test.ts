import { expect } from "vitest";
import { defineActivity, defineOrchestration, defineSession } from "../../../../shared/definitions/index.ts";
import { nextDeadline } from "../../../../shared/replay/index.ts";
import { type Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import {
  activated,
  checkpointed,
  completed,
  failed,
  held,
  lost,
  parked,
  signal,
  start,
  wake,
  wanted,
} from "../../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => 0 });
const cache = defineSession("cache", {
  init: () => ({}),
  calls: {},
  checkpoint: () => new Uint8Array(),
  restore: () => ({}),
});
const uses = defineOrchestration("uses", {
  async run(ctx) {
    const session = await ctx.openSession(cache, { id: "s" });
    const results: unknown[] = [];
    for (;;) {
      const what = await ctx.waitForSignal<string>("do");
      if (what === "end") return results;
      results.push(await session.run(work, what).catch((error) => error.code));
    }
  },
});
const app = { work, cache, uses };

const active = async (bench: Bench) => {
  await bench.turn(start("uses"));
  await bench.turn(activated("s", held(1)));
};

scenario("an idle session is parked; the next call asks for it again", app, async (bench) => {
  await active(bench);
  const { effects } = await bench.turn(parked("s", held(1)));
  expect(bench.phase("s")).toBe("parked");
  expect(effects).toEqual([{ kind: "register-session", sessionId: "s" }]);
  expect(nextDeadline(bench.state)).toBeUndefined();
  const next = await bench.turn(signal("do", "one"));
  expect(next.events.map((event) => event.kind)).toEqual([
    "signal.received",
    "activity.scheduled",
    "session.requested",
  ]);
  expect(next.effects).toContainEqual(
    expect.objectContaining({ kind: "claim", attachment: 2, restore: false }),
  );
  await bench.turn(activated("s", held(2)));
  await bench.turn(completed(bench.task("work"), 1, { epoch: 20 }));
  await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual([1]);
});

const tells = {
  cache,
  tells: defineOrchestration("tells", {
    async run(ctx) {
      const session = await ctx.openSession(cache, { id: "s", idleTimeout: "1s" });
      const before = session.info.inits;
      await ctx.waitForSignal("again");
      await ctx.waitForSignal("and-again");
      return [before, session.info.inits];
    },
  }),
};

scenario(
  "defect 35: a state made anew after idling shows in the info; its last holder is preferred",
  { ...app, ...tells },
  async (bench) => {
    await bench.turn(start("tells"));
    await bench.turn(activated("s", held(1)));
    await bench.turn(parked("s", held(1)));
    const { effects } = await bench.turn(wanted("s"));
    expect(effects).toContainEqual(
      expect.objectContaining({ kind: "claim", session: expect.objectContaining({ parkedBy: "w1" }) }),
    );
    await bench.turn(activated("s", held(2)), signal("again"), signal("and-again"));
    expect(bench.output).toEqual([1, 2]);
    expect(bench.state.sessions.get("s")?.parkedBy).toBeUndefined();
  },
);

scenario("a parked session comes back with what it had saved", app, async (bench) => {
  await active(bench);
  await bench.turn(checkpointed("s", held(1)), parked("s", held(1)));
  const { effects } = await bench.turn(signal("do", "one"));
  expect(effects).toContainEqual(expect.objectContaining({ kind: "claim", restore: true }));
});

scenario("a call that crossed with the parking finds its way to the next holder", app, async (bench) => {
  await active(bench);
  await bench.turn(signal("do", "one"));
  const of = bench.task("work");
  const { events } = await bench.turn(checkpointed("s", held(1)), parked("s", held(1)));
  expect(events.map((event) => event.kind)).toEqual([
    "session.checkpointed",
    "session.parked",
    "session.requested",
  ]);
  expect(events.at(-1)).toMatchObject({ restore: true });
  const { effects } = await bench.turn(activated("s", held(2)));
  expect(effects).toContainEqual(expect.objectContaining({ kind: "call", on: held(2) }));
  const { verdicts } = await bench.turn(
    completed(of, "late", { epoch: 10 }),
    completed(of, "right", { epoch: 20 }),
  );
  expect(verdicts).toEqual(["fenced", "facts"]);
});

scenario("parking twice, by an old holder, or what is lost: nothing", app, async (bench) => {
  await active(bench);
  expect((await bench.turn(parked("s", held(1, 99)))).verdicts).toEqual(["fenced"]);
  await bench.turn(parked("s", held(1)));
  expect((await bench.turn(parked("s", held(1)), lost("s", held(1)))).verdicts).toEqual([
    "fenced",
    "repeated",
  ]);
});

scenario("nobody takes it again: the call fails with the reason, the session is over", app, async (bench) => {
  await active(bench);
  await bench.turn(parked("s", held(1)));
  await bench.turn(signal("do", "one"));
  bench.advance(30_000);
  await bench.turn(wake());
  await bench.turn(signal("do", "two"));
  await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual(["session_creation_timeout", "session_unusable"]);
});

scenario("a call on a session is tried once unless it says otherwise", app, async (bench) => {
  await active(bench);
  await bench.turn(signal("do", "one"));
  await bench.turn(failed(bench.task("work"), { code: "broken" }, { epoch: 10 }));
  await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual(["broken"]);
});
