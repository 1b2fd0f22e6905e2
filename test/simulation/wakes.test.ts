/**
 * Owners that die around a timer. A timer fires in the owner's memory first, and its durable twin up to 250 ms later by
 * the server's clock: whatever the owner has left undone by then, the twin must bring to an end (T3).
 */
import { expect, test } from "vitest";
import type { FaultPoint } from "../../services/orchestrator/fault-points.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../shared/definitions/index.ts";
import { World } from "../support/engine-world.ts";
import { checkHistory } from "../support/history-laws.ts";
import { noFaults } from "../support/memory-bus.ts";

const lateSchedules = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [125, 125] } as const;

type Run = "fails" | "hangs";
/** What the first runs of the activity do; all others return. */
let script: readonly Run[] = [];
let runs = 0;
const scripted = defineActivity("scripted", {
  run: async () => {
    const what = script[runs++];
    if (what === "fails") throw new Error("not today");
    if (what === "hangs") await new Promise(() => undefined);
    return "done";
  },
});
const app = collectApp({
  rounds: defineOrchestration("rounds", {
    run: async (ctx, n: number) => {
      await ctx.sleep("2s");
      return n < 3 ? ctx.continueAsNew(n + 1) : n;
    },
  }),
  nap: defineOrchestration("nap", { run: (ctx) => ctx.sleep("10s") }),
  scripted,
  patient: defineOrchestration("patient", {
    run: (ctx) =>
      ctx.run(scripted, null, { startToClose: "4s", retry: { initialDelay: "1s", maxAttempts: 5 } }),
  }),
  bounded: defineOrchestration("bounded", {
    run: (ctx) =>
      ctx.run(scripted, null, {
        scheduleToStart: "10s",
        scheduleToClose: "60s",
        retry: { initialDelay: "1s", maxAttempts: 5 },
      }),
  }),
});

async function open(...first: Run[]): Promise<World> {
  script = first;
  runs = 0;
  const world = new World({ seed: 1, app, faults: lateSchedules });
  await world.prepare();
  return world;
}

const points: FaultPoint[] = [
  "turn.before_append",
  "turn.after_append",
  "effects.half_published",
  "turn.after_effects",
  "continue.between_executions",
];
const deaths = points.flatMap((point) => [1, 2, 3, 4, 5, 6].map((count) => ({ point, count })));

test.each(deaths)("an execution that ended by a timer goes on: death at $point, $count", async (death) => {
  const world = await open();
  const first = await world.orchestrator(death);
  const handle = await world.start("rounds", 1, "a");
  await world.clock.advance(10_000);
  first.kill();
  await world.orchestrator();
  expect(await world.run(handle.result(), 300_000)).toBe(3);
  checkHistory((await world.history("a")) ?? []);
  await world.clock.advance(10_000); // a wake may still be on its way
  const inbox = await world.run(world.outside.streamInfo(world.names.inboxStream));
  expect(inbox?.messages, "no schedule is left").toBe(0);
});

const laterDeaths = deaths.filter(({ count }) => count > 1 && count < 5);

test.each(laterDeaths)("a retry after a timeout is sent: death at $point, $count", async (death) => {
  const world = await open("hangs");
  const first = await world.orchestrator(death);
  const handle = await world.start("patient", null, "a");
  await world.clock.advance(500);
  const worker = await world.worker();
  await world.clock.advance(1000);
  // Gone with its work: nobody will report.
  worker.kill();
  await world.run(world.outside.purge(world.names.activitiesStream, ">"));
  await world.clock.advance(20_000);
  first.kill();
  await world.worker();
  await world.orchestrator();
  expect(await world.run(handle.result(), 300_000)).toBe("done");
});

test("a deadline that comes back after another one wakes too", async () => {
  const world = await open("fails", "hangs");
  const first = await world.orchestrator();
  await world.worker();
  const handle = await world.start("bounded", null, "a");
  await world.clock.advance(20_000);
  expect(runs, "the second one is under way").toBe(2);
  first.kill();
  await world.orchestrator();
  await expect(world.run(handle.result(), 120_000)).rejects.toMatchObject({ code: "timeout" });
});

test("a clock behind the server's makes no timer early, and loses none", async () => {
  const world = await open();
  const first = await world.orchestrator(undefined, { clockBehindMs: 2000 });
  const startedAt = world.clock.now();
  const handle = await world.start("nap", null, "a");
  // The durable one has come by now, and was too early for this owner.
  await world.clock.advance(9000);
  expect(await world.run(handle.status())).toMatchObject({ status: "running" });
  first.kill();
  await world.orchestrator();
  await world.run(handle.result(), 60_000);
  expect(world.clock.now() - startedAt).toBeGreaterThanOrEqual(10_000);
});
