import { expect } from "vitest";
import {
  defineActivity,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../../shared/definitions/index.ts";
import { isCancelled } from "../../../../shared/errors/index.ts";
import { scenario } from "../../../support/worlds/instance-bench.ts";
import {
  activated,
  cancel,
  claimed,
  completed,
  held,
  lost,
  signal,
  start,
  stateMissing,
  terminate,
} from "../../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => 0 });
const flow = (run: (ctx: OrchestrationContext) => Promise<unknown>) => ({
  work,
  flow: defineOrchestration("flow", { run }),
});

const closes = flow(async (ctx) => {
  const session = await ctx.openSession({ id: "s" });
  const running = [session.run(work, 1), session.run(work, 2)];
  await ctx.waitForSignal("close");
  await session.close();
  const ended = await Promise.all(running.map((call) => call.catch((error) => isCancelled(error))));
  const after = await session.run(work, 3).catch((error) => [error.name, error.message]);
  await session.close();
  await ctx.waitForSignal("end");
  const later = await session.run(work, 4).catch((error) => error.code);
  await session.close();
  return { ended, after, later, state: session.info.state };
});

scenario("closing cancels what runs, ignores what comes late, and is done once", closes, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(activated("s", held(1)));
  const [a, b] = bench.open("work") as [number, number];
  const { events, effects } = await bench.turn(signal("close"));
  expect(events.map((event) => event.kind)).toEqual(["signal.received", "session.closed"]);
  expect(effects).toMatchObject([
    { kind: "close-session", on: held(1) },
    { kind: "register-session", sessionId: "s" },
  ]);
  expect(bench.state.tasks.size).toBe(0);
  const { verdicts } = await bench.turn(
    completed(a, 1, { epoch: 10 }),
    stateMissing(b, { epoch: 10 }),
    lost("s", held(1)),
    activated("s", held(2), { warm: true }),
  );
  expect(verdicts).toEqual(["fenced", "fenced", "repeated", "fenced"]);
  await bench.turn(signal("end"));
  expect(bench.output).toEqual({
    ended: [true, true],
    after: ["SessionUnusable", "session s is closed"],
    later: "session_unusable",
    state: "closed",
  });
  expect(bench.kinds.filter((kind) => kind === "session.closed")).toHaveLength(1);
});

const using = flow(async (ctx) => {
  const seen: unknown[] = [];
  for (let i = 0; i < 2; i++) {
    await using session = await ctx.openSession({ id: `u${i}` });
    seen.push(await session.run(work, i));
  }
  return seen;
});

scenario("await using closes", using, async (bench) => {
  await bench.turn(start("flow"));
  for (const [i, id] of ["u0", "u1"].entries()) {
    await bench.turn(activated(id, held(1)));
    await bench.turn(completed(bench.task("work"), i, { epoch: 10 }));
    expect(bench.phase(id)).toBe("closed");
  }
  expect(bench.output).toEqual([0, 1]);
});

const reopens = flow(async (ctx) => {
  const first = await ctx.openSession({ id: "s", lazy: true });
  await first.close();
  const again = await ctx.openSession({ id: "s", lazy: true });
  const state = again.info.state;
  await again.close();
  const third = await ctx.openSession({ id: "s" });
  return [state, await third.run(work, 1)];
});

scenario("an id may be opened again after it was closed, in the same turn too", reopens, async (bench) => {
  await bench.turn(start("flow"));
  expect(bench.kinds).toEqual([
    "instance.started",
    "session.opened",
    "session.closed",
    "session.opened",
    "session.closed",
    "session.opened",
    "session.requested",
  ]);
  await bench.turn(activated("s", held(1)));
  await bench.turn(completed(bench.task("work"), "x", { epoch: 10 }));
  expect(bench.output).toEqual(["parked", "x"]);
});

const reopensLost = flow(async (ctx) => {
  const first = await ctx.openSession({ id: "s" });
  await first.run(work, 1).catch(() => undefined);
  const second = await ctx.openSession({ id: "s" });
  return second.info.attachment;
});

scenario("after a loss too, and lease keys are never used twice", reopensLost, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(activated("s", held(1)));
  const { effects } = await bench.turn(lost("s", held(1)));
  expect(effects).toContainEqual(expect.objectContaining({ kind: "claim", attachment: 2 }));
  await bench.turn(activated("s", held(2)));
  expect(bench.output).toBe(2);
});

const livesAgain = flow(async (ctx) => {
  const options = { id: "s", executionTimeout: "1m" } as const;
  const first = await ctx.openSession(options);
  await first.run(work, 1).catch(() => undefined);
  await ctx.openSession(options);
});

scenario("the clock of a life that was lost does not run on into the next", livesAgain, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(activated("s", held(1)));
  const { effects } = await bench.turn(lost("s", held(1)));
  expect(effects).toContainEqual({ kind: "unschedule", of: 2 });
  expect(effects).toContainEqual(expect.objectContaining({ kind: "schedule", at: bench.now + 60_000 }));
});

const rebuilding = flow(async (ctx) => {
  const session = await ctx.openSession({ id: "s", recovery: { rebuild: { activity: work } } });
  const running = session.run(work, 1).catch((error) => error.code);
  await ctx.waitForSignal("close");
  await session.close();
  return await running;
});

scenario("closing during a rebuild sends nothing more", rebuilding, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(activated("s", held(1)));
  await bench.turn(stateMissing(bench.task("work"), { epoch: 10 }));
  const { effects } = await bench.turn(signal("close"));
  expect(effects.map((effect) => effect.kind)).not.toContain("call");
  expect(bench.output).toBe("cancelled");
});

const ends = flow(async (ctx) => {
  const [session] = await Promise.all([ctx.openSession({ id: "held" }), ctx.openSession({ id: "claimed" })]);
  return session.id;
});
const leftOpen = flow(async (ctx) => {
  await ctx.openSession({ id: "lazy", lazy: true });
  const [session] = await Promise.all([
    ctx.openSession({ id: "held" }),
    ctx.waitForSignal("opened").then(() => "go on"),
  ]);
  ctx.openSession({ id: "claimed" });
  ctx.openSession({ id: "opening" });
  session.run(work, 1);
  const how = await ctx.waitForSignal("end");
  if (how === "fail") throw new Error("on purpose");
  return how;
});

for (const [end, message] of [
  ["completed", signal("end", "well")],
  ["failed", signal("end", "fail")],
  ["cancelled", cancel()],
  ["terminated", terminate()],
] as const) {
  scenario(`sessions still open are closed before the instance is ${end}`, leftOpen, async (bench) => {
    await bench.turn(start("flow"));
    await bench.turn(activated("held", held(1)), signal("opened"));
    await bench.turn(claimed("claimed", held(1)));
    const { events, effects } = await bench.turn(message);
    const kinds = events.map((event) => event.kind);
    expect(kinds.at(-1)).toBe(`instance.${end}`);
    expect(kinds.filter((kind) => kind === "session.closed")).toHaveLength(4);
    const asked = effects.map((effect) => effect.kind);
    expect(asked.filter((kind) => kind === "close-session")).toHaveLength(2);
    expect(asked.filter((kind) => kind === "withdraw-claim")).toHaveLength(1);
    for (const id of ["lazy", "held", "claimed", "opening"]) expect(bench.phase(id)).toBe("closed");
    const late = await bench.turn(activated("opening", held(1)), activated("claimed", held(1)));
    expect(late.verdicts).toEqual(["ended", "ended"]);
  });
}

scenario("an end while others are opened withdraws them", ends, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(activated("held", held(1)));
  expect(bench.state.status).toBe("running");
  await bench.turn(activated("claimed", held(1)));
  expect(bench.output).toBe("held");
});

const closesOpening = flow(async (ctx) => {
  const opening = ctx.openSession({ id: "s" }).catch((error) => error.message);
  const again = await ctx.openSession({ id: "t", lazy: true });
  await again.close();
  return await Promise.race([opening, ctx.waitForSignal("end")]);
});

scenario("a lazy session closed in its first turn is never asked for", closesOpening, async (bench) => {
  const { effects } = await bench.turn(start("flow"));
  expect(effects.filter((effect) => effect.kind === "claim")).toHaveLength(1);
  await bench.turn(signal("end", 1));
  expect(bench.output).toBe(1);
});
