/** Rates of activities over all workers: never exceeded, also when workers race or die (RATE-1, RATE-2). */
import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let world: World;
let begun: { at: number; who: string; what: string }[] = [];
const note = (what: string, who: string) => begun.push({ at: world.clock.now(), who, what });

const steady = defineActivity("steady", {
  rate: { limit: 5, per: "1s" },
  run: (ctx) => void note("steady", ctx.workerId),
});
const bursting = defineActivity("bursting", {
  rate: { limit: 2, per: "1s", burst: 4 },
  run: (ctx) => void note("bursting", ctx.workerId),
});
const keyed = defineActivity("keyed", {
  rate: { limit: 1, per: "1s", key: ({ customer }: { customer: string }) => customer },
  run: (_ctx, { customer }: { customer: string }) => void note("keyed", customer),
});
const shared = (name: string) =>
  defineActivity(name, {
    queue: "mail",
    rate: { limit: 2, per: "1s", of: "queue" },
    run: (ctx) => void note("mail", ctx.workerId),
  });
const [letters, cards] = [shared("letters"), shared("cards")];
const free = defineActivity("free", { run: (ctx) => void note("free", ctx.workerId) });

const app = collectApp({
  ...{ steady, bursting, keyed, letters, cards, free },
  many: defineOrchestration("many", {
    run: async (ctx, { name, n }: { name: string; n: number }) => {
      const inputs = Array.from({ length: n }, (_, i) => ({ customer: `c${i % 3}` }));
      await Promise.all(inputs.map((input) => ctx.run(name, input)));
      return n;
    },
  }),
  mails: defineOrchestration("mails", {
    run: async (ctx) => {
      const both = Array.from({ length: 4 }, () => [ctx.run(letters, null), ctx.run(cards, null)]);
      await Promise.all(both.flat());
    },
  }),
  local: defineOrchestration("local", { run: (ctx) => ctx.local(steady, null) }),
});

async function open({ seed = 1, faulty = false, workers = 4 } = {}): Promise<void> {
  begun = [];
  world = new World({ seed, app, faults: faulty ? someFaults : { ...noFaults, latencyMs: [1, 5] } });
  await world.prepare();
  await world.orchestrator();
  await world.orchestrator();
  for (let i = 0; i < workers; i++) await world.worker();
}
const times = (of: string) =>
  begun
    .filter(({ what }) => what === of)
    .map(({ at }) => at)
    .sort((a, b) => a - b);
/**
 * Between any so many runs in a row lies at least this. Reserved instants are exact; a run begins up to one write of 2 to
 * 10 ms after its instant, by a clock that a worker measured over such a write.
 */
function expectSpread(at: readonly number[], runs: number, ms: number, slackMs = 20): void {
  for (let i = runs; i < at.length; i++)
    expect((at[i] ?? 0) - (at[i - runs] ?? 0), `runs ${i - runs} and ${i}`).toBeGreaterThanOrEqual(
      ms - slackMs,
    );
}

test("four workers and two orchestrators: never more than the rate, and as much as it lets", async () => {
  await open();
  const from = world.clock.now();
  const handle = await world.start("many", { name: "steady", n: 30 }, "a");
  expect(await world.run(handle.result(), 120_000)).toBe(30);
  expectSpread(times("steady"), 1, 200);
  expect(new Set(begun.map(({ who }) => who)).size, "all share in it").toBeGreaterThan(1);
  expect(world.clock.now() - from).toBeLessThan(12_000);
});

test("a burst after a pause, then the rate", async () => {
  await open();
  await world.run((await world.start("many", { name: "bursting", n: 10 }, "a")).result(), 120_000);
  const at = times("bursting");
  expect((at[3] ?? 0) - (at[0] ?? 0)).toBeLessThan(500);
  for (let i = 4; i < at.length; i++)
    expect((at[i] ?? 0) - (at[0] ?? 0), `run ${i}`).toBeGreaterThanOrEqual((i - 3) * 500 - 10);
});

test("each key has a bucket of its own; one that waits holds up no other", async () => {
  await open();
  const from = world.clock.now();
  await world.run((await world.start("many", { name: "keyed", n: 12 }, "a")).result(), 120_000);
  for (const customer of ["c0", "c1", "c2"]) {
    const own = begun.filter(({ who }) => who === customer).map(({ at }) => at);
    expect(own).toHaveLength(4);
    expectSpread(
      own.sort((a, b) => a - b),
      1,
      1000,
    );
  }
  expect(world.clock.now() - from).toBeLessThan(12_000);
});

test("activities of a queue share a bucket where they say so", async () => {
  await open();
  await world.run((await world.start("mails", null, "a")).result(), 120_000);
  expect(times("mail")).toHaveLength(8);
  expectSpread(times("mail"), 1, 500);
});

test("what has no rate does not wait", async () => {
  await open({ workers: 1 });
  const limited = await world.start("many", { name: "steady", n: 20 }, "a");
  await world.clock.advance(500);
  await world.run((await world.start("many", { name: "free", n: 20 }, "b")).result(), 2000);
  await world.run(limited.result(), 120_000);
});

test.each([1, 2, 3])("workers die and messages are lost: never more than the rate, seed %i", async (seed) => {
  await open({ seed, faulty: true, workers: 3 });
  const doomed = await world.worker();
  const handle = await world.start("many", { name: "steady", n: 20 }, "a");
  await world.clock.advance(1500 + world.random.next() * 1000);
  doomed.kill();
  await world.worker();
  expect(await world.run(handle.result(), 600_000)).toBe(20);
  // Clocks are measured over a bus that is slow at times: by so much two workers may disagree.
  expectSpread(times("steady"), 5, 1000, 400);
});

test("a rate is kept by workers: such an activity is not run locally", async () => {
  await open({ workers: 0 });
  const handle = await world.start("local", null, "a");
  await expect(world.run(handle.result(), 60_000)).rejects.toMatchObject({ code: "invalid_option" });
});

test("bad rates are refused where they are given", () => {
  const define = (rate: object) => () => defineActivity("x", { rate: rate as never, run: () => undefined });
  expect(define({ limit: 0, per: "1s" })).toThrow(
    'activity "x": rate.limit must be a whole number above 0, not 0',
  );
  expect(define({ limit: 1, per: "1s", burst: 0.5 })).toThrow("rate.burst");
  expect(define({ limit: 1, per: 0 })).toThrow("rate.per must be at least 1 ms");
  expect(define({ limit: 1, per: "soon" })).toThrow('rate.per of activity "x": "soon" is not a duration');
});
