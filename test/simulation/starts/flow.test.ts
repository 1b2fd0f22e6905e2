/** Flow control in the whole engine: limits hold exactly with two orchestrators racing, and survive every kill. */
import { expect, test } from "vitest";
import { type FlowOptions, flowInstance, flowShards, flowWaitingQuery } from "../../../schemas/index.ts";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { keeperOfKey } from "../../../services/orchestrator/flow/held-starts.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import type { InstanceHandle } from "../../../shared/sdk/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const calm = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;

/** Instances whose work a worker has in hand. */
const inHand = new Set<string>();
let mostInHand = 0;
const work = defineActivity("work", {
  run: async (ctx, ms: number) => {
    inHand.add(ctx.instanceId);
    mostInHand = Math.max(mostInHand, inHand.size);
    await new Promise<void>((resolve) => world.clock.after(ms, resolve));
    inHand.delete(ctx.instanceId);
  },
});

const app = collectApp({
  work,
  worked: defineOrchestration("worked", { run: (ctx, ms: number) => ctx.run(work, ms) }),
  job: defineOrchestration("job", {
    async run(ctx, ms: number) {
      await ctx.sleep(ms);
      return ms;
    },
  }),
});

let world: World;
async function open({ seed = 1, faulty = false, alwaysReplay = false } = {}): Promise<World> {
  world = new World({ seed, app, faults: faulty ? someFaults : calm, alwaysReplay });
  await world.prepare();
  return world;
}

/** Until it is accepted; the same id again changes nothing. */
async function ask(
  id: string,
  ms: number,
  flow: Omit<FlowOptions, "key">,
  delay?: number,
): Promise<InstanceHandle> {
  for (;;) {
    try {
      const options = { id, flow: { key: "k", ...flow }, ...(delay === undefined ? {} : { delay }) };
      return await world.run(world.client.start("job", ms, options));
    } catch (error) {
      if ((error as { code?: string }).code !== "outcome_unknown") throw error;
    }
  }
}
const runs = async () =>
  (await world.run(world.client.list({ name: "job", limit: 1000 }))).sort(
    (a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0),
  );
/** The most that ran at a time. */
async function most(): Promise<number> {
  const edges = (await runs()).flatMap(({ startedAt = 0, endedAt = Number.POSITIVE_INFINITY }) => [
    { at: startedAt, by: 1 },
    { at: endedAt, by: -1 },
  ]);
  edges.sort((a, b) => a.at - b.at || a.by - b.by);
  let now = 0;
  return edges.reduce((highest, { by }) => Math.max(highest, (now += by)), 0);
}
async function checkKeepers(): Promise<void> {
  for (let shard = 0; shard < flowShards; shard++) {
    const commits = await world.history(flowInstance(shard));
    if (commits) checkHistory(commits);
  }
}
const left = (handle: InstanceHandle) =>
  world.run(handle.result(), 600_000).then(String, (error) => error.code);

const points: FaultPoint[] = [
  "turn.before_append",
  "turn.after_append",
  "effects.half_published",
  "turn.after_effects",
];
const deaths = points.flatMap((point) => [1, 4].map((count) => ({ point, count })));

test.each(deaths)("two at a time, all of them once: an owner dies at $point, $count", async (death) => {
  await open();
  const first = await world.orchestrator(death);
  const handles: InstanceHandle[] = [];
  for (let i = 0; i < 7; i++) handles.push(await ask(`j${i}`, 2000, { concurrency: 2 }));
  await world.clock.advance(5000);
  first.kill();
  await world.orchestrator();
  for (const handle of handles) expect(await world.run(handle.result(), 600_000)).toBe(2000);
  expect(await most()).toBeLessThanOrEqual(2);
  await checkKeepers();
});

test("its keeper says exactly how many wait, whatever it wrote down last, and writes nothing for it", async () => {
  await open();
  await world.orchestrator();
  const handles: InstanceHandle[] = [];
  for (let i = 0; i < 9; i++) handles.push(await ask(`j${i}`, 60_000, { concurrency: 2 }));
  await world.clock.advance(2_000);
  const keeper = keeperOfKey("k");
  const waiting = () => world.run(world.client.query(keeper, flowWaitingQuery));
  const commits = (await world.history(keeper))?.length;
  expect(await waiting()).toEqual([{ key: "k", waiting: 7 }]);
  expect((await world.history(keeper))?.length).toBe(commits);
  for (const handle of handles.toReversed().slice(0, 7)) await world.run(handle.terminate());
  await world.clock.advance(2_000);
  expect(await waiting()).toEqual([]);
  await checkKeepers();
});

test.each([1, 2, 3])("bad days with two orchestrators racing, seed %i", async (seed) => {
  await open({ seed, faulty: true });
  const members = [await world.orchestrator(), await world.orchestrator()];
  const handles: InstanceHandle[] = [];
  for (let i = 0; i < 12; i++) handles.push(await ask(`j${i}`, 1500, { concurrency: 3 }));
  await world.clock.advance(world.random.next() * 4000);
  members.shift()?.kill();
  members.push(await world.orchestrator());
  for (const handle of handles) expect(await world.run(handle.result(), 600_000)).toBe(1500);
  expect(await most(), `seed ${seed}`).toBeLessThanOrEqual(3);
  await checkKeepers();
});

test.each([1, 2, 3])("four workers and two orchestrators: never more in hand, seed %i", async (seed) => {
  await open({ seed });
  mostInHand = 0;
  for (let i = 0; i < 4; i++) await world.worker();
  const members = [await world.orchestrator(), await world.orchestrator()];
  const starts = Array.from({ length: 20 }, (_, i) =>
    world.client.start("worked", 500 + world.random.next() * 500, {
      id: `w${i}`,
      flow: { key: "k", concurrency: 3 },
    }),
  );
  const handles = await world.run(Promise.all(starts));
  await world.clock.advance(world.random.next() * 3000);
  members.shift()?.kill();
  members.push(await world.orchestrator());
  for (const handle of handles) await world.run(handle.result(), 600_000);
  expect(mostInHand, `seed ${seed}`).toBe(3);
  await checkKeepers();
});

test.each([false, true])("a rate holds to the millisecond, always replaying %s", async (alwaysReplay) => {
  await open({ alwaysReplay });
  await world.orchestrator();
  const handles: InstanceHandle[] = [];
  for (let i = 0; i < 6; i++) handles.push(await ask(`j${i}`, 0, { rate: { limit: 1, per: "2s" } }));
  for (const handle of handles) await world.run(handle.result(), 600_000);
  const scheduled = (
    (await Promise.all(
      Array.from({ length: flowShards }, (_, shard) => world.history(flowInstance(shard))),
    )) ?? []
  )
    .flatMap((commits) => commits ?? [])
    .filter(({ events }) => events.some(({ kind }) => kind === "child.scheduled"))
    .map(({ at }) => at);
  for (const [i, at] of scheduled.entries())
    if (i > 0) expect(at - (scheduled[i - 1] ?? 0)).toBeGreaterThanOrEqual(2000);
  expect(scheduled).toHaveLength(6);
  await checkKeepers();
});

/** In which order those that waited behind the first began. */
async function order(alwaysReplay: boolean, waiting: readonly [string, Omit<FlowOptions, "key">][]) {
  await open({ alwaysReplay });
  for (let i = 0; i < 4; i++) await world.worker();
  await world.orchestrator();
  await world.orchestrator();
  await ask("first", 3000, { concurrency: 1 });
  await world.clock.advance(500);
  const handles: InstanceHandle[] = [];
  for (const [id, flow] of waiting) handles.push(await ask(id, 100, { concurrency: 1, ...flow }));
  for (const handle of handles) await left(handle);
  expect(await most()).toBe(1);
  await checkKeepers();
  return (await runs()).map(({ instanceId }) => instanceId).slice(1);
}

test.each([false, true])("priorities first, and groups take turns, always replaying %s", async (replay) => {
  expect(
    await order(replay, [
      ["low", { priority: -5 }],
      ["a1", { fairness: "a" }],
      ["a2", { fairness: "a" }],
      ["b1", { fairness: "b" }],
      ["high", { priority: 5 }],
    ]),
  ).toEqual(["high", "a1", "b1", "a2", "low"]);
});

test.each([false, true])("replace: the latest takes the place of who waits, replaying %s", async (replay) => {
  const replace = { concurrency: { limit: 1, onBusy: "replace" as const } };
  expect(
    await order(replay, [
      ["one", replace],
      ["two", replace],
      ["three", replace],
    ]),
  ).toEqual(["three"]);
  for (const id of ["one", "two"]) expect(await left(world.client.get(id))).toBe("start_replaced");
});

test("a second singleton is rejected while the first runs, and says so under its own id", async () => {
  await open();
  await world.orchestrator();
  const first = await ask("one", 5000, { singleton: true });
  const second = await ask("two", 5000, { singleton: true });
  expect(await left(second)).toBe("start_rejected");
  expect(await left(first)).toBe("5000");
  expect(await left(await ask("three", 10, { singleton: true }))).toBe("10");
});

test("cancel-running: the later one takes over when the earlier has ended", async () => {
  await open();
  await world.orchestrator();
  const first = await ask("one", 600_000, { concurrency: { limit: 1, onBusy: "cancel-running" } });
  await world.clock.advance(500);
  const second = await ask("two", 1000, { concurrency: { limit: 1, onBusy: "cancel-running" } });
  expect(await left(first)).toBe("cancelled");
  expect(await left(second)).toBe("1000");
  expect(await most()).toBe(1);
});

test("debounced, the last one runs; throttled, the first one does", async () => {
  await open();
  await world.orchestrator();
  const quiet = { debounce: { period: "2s" } };
  const asked = [await ask("d1", 10, quiet), await ask("d2", 10, quiet), await ask("d3", 10, quiet)];
  expect(await Promise.all(asked.map(left))).toEqual(["start_debounced", "start_debounced", "10"]);
  const once = { throttle: { period: "1m" } };
  const again = [await ask("t1", 10, once), await ask("t2", 10, once)];
  expect(await Promise.all(again.map(left))).toEqual(["10", "start_throttled"]);
});

test("a start that comes twice is one start", async () => {
  await open();
  await world.orchestrator();
  for (let i = 0; i < 3; i++) await ask("same", 1000, { concurrency: 1 });
  await world.clock.advance(200_000); // the server has forgotten the message by now
  const handle = await ask("same", 1000, { concurrency: 1 });
  const next = await ask("next", 10, { concurrency: 1 });
  expect(await left(handle)).toBe("1000");
  expect(await left(next)).toBe("10");
  expect(await runs()).toHaveLength(2);
});

test("delayed: not before its time, also when its orchestrator was away; together with a limit too", async () => {
  await open();
  const first = await world.orchestrator();
  const asked = world.clock.now();
  const plain = await world.run(world.client.start("job", 10, { id: "late", delay: "20s" }));
  const limited = await ask("late-too", 10, { concurrency: 1 }, 20_000);
  await world.clock.advance(10_000);
  first.kill();
  expect(await runs()).toHaveLength(0);
  await world.clock.advance(5000);
  await world.orchestrator();
  expect(await left(plain)).toBe("10");
  expect(await left(limited)).toBe("10");
  for (const { startedAt = 0 } of await runs()) expect(startedAt - asked).toBeGreaterThanOrEqual(20_000);
});

test("bad input is refused where it is given", async () => {
  await open();
  const start = (options: object) => world.run(world.client.start("job", 1, options as never));
  const refused = async (flow: object, message: string) =>
    expect(start({ flow })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining(message),
    });
  await refused({ key: "k", concurrency: 0 }, "flow.concurrency");
  await refused({ key: "k", rate: { limit: 0, per: "1s" } }, "flow.rate.limit");
  await refused({ key: "k", rate: { limit: 1, per: 0 } }, "flow.rate.per must be at least 1 ms");
  await refused({ key: "x".repeat(257), concurrency: 1 }, "flow.key");
  await refused({ key: "", concurrency: 1 }, "flow.key");
  await refused({ key: "k" }, "flow sets no limit");
  await refused({ key: "k", singleton: true, concurrency: 2 }, "both singleton and concurrency");
  await refused({ key: "k", debounce: { period: 1 }, throttle: { period: 1 } }, "both debounce and throttle");
  await refused({ key: "k", singleton: false }, "flow sets no limit");
  await refused(
    { key: "k", debounce: { period: "10s", maxWait: "5s" } },
    "maxWait (5000 ms) is shorter than period",
  );
  await refused({ key: "k", concurency: 1 }, 'flow has no option "concurency"; did you mean "concurrency"?');
  await refused({ key: "k", concurrency: { limit: 1, onbusy: "reject" } }, 'did you mean "onBusy"?');
  await refused({ key: "k", rate: { limit: 1, per: "1s", brust: 2 } }, 'did you mean "burst"?');
  await refused({ key: "k", debounce: { period: 1, max: 2 } }, 'flow.debounce has no option "max"');
  await expect(start({ delay: -5 })).rejects.toMatchObject({ code: "invalid_duration" });
});
