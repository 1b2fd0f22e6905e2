/**
 * A history that stops answering in the middle of an append, for longer than a turn waits: the turn is tried again from
 * what the history says then, and what the commit asked for gets out, whether it was stored or not (T3).
 */
import { expect, test } from "vitest";
import type { PublishOutcome } from "../../../shared/bus/index.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let world: World;
const brief = defineActivity("brief", {
  run: () => new Promise<number>((resolve) => void world.clock.after(20, () => resolve(1))),
});
const steps = defineOrchestration("steps", {
  async run(ctx) {
    let sum = 0;
    for (let n = 0; n < 3; n++) sum += await ctx.run(brief, null);
    await ctx.sleep("1s");
    return sum;
  },
});
let begun = 0;
/** By the queue, as a second attempt: the lane is asked what it has, the queue is not. */
const long = defineActivity("long", {
  run: async (ctx) => {
    if (ctx.attempt === 1) throw new Error("not today");
    begun++;
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
  },
});
const waits = defineOrchestration("waits", {
  run: (ctx) => ctx.run(long, null, { retry: { initialDelay: "1s", maxAttempts: 3 } }),
});
const app = collectApp({ brief, steps, long, waits });

const cases = [1, 2, 3, 4, 5].flatMap((nth) => [[nth, true] as const, [nth, false] as const]);

test.each(cases)("the append number %i, stored %s", async (nth, stored) => {
  world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, ownAfterMs: 0 });
  await world.prepare();
  await world.worker();
  const { bus } = await world.orchestrator();
  const { silent } = world.broker;
  const stream = world.names.ownHistoryStream("i");
  const publish = bus.publish.bind(bus);
  let appends = 0;
  bus.publish = async (subject, body, options): Promise<PublishOutcome> => {
    if (subject !== world.names.ownHistory("i") || ++appends !== nth) return publish(subject, body, options);
    if (stored) await publish(subject, body, options);
    silent.add(stream);
    world.clock.after(60_000, () => silent.clear());
    return { kind: "unknown" };
  };
  const handle = await world.start("steps", null, "i");
  expect(await world.run(handle.result(), 120_000)).toBe(3);
  expect(appends).toBeGreaterThanOrEqual(nth);
  expect(world.happenings).toContainEqual(expect.objectContaining({ kind: "fault", where: "turn of i" }));
  checkHistory((await world.history("i")) ?? []);
});

test("an append that was not stored does not send again what the commit before it asked for, long ago", async () => {
  begun = 0;
  world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, ownAfterMs: 0 });
  await world.prepare();
  await world.worker();
  await world.worker();
  const { bus } = await world.orchestrator();
  await world.start("waits", null, "i");
  await world.clock.advance(600_000);
  expect(begun).toBe(1);
  const { silent } = world.broker;
  const publish = bus.publish.bind(bus);
  let appends = 0;
  bus.publish = async (subject, body, options): Promise<PublishOutcome> => {
    if (subject !== world.names.ownHistory("i") || ++appends > 1) return publish(subject, body, options);
    silent.add(world.names.ownHistoryStream("i"));
    world.clock.after(15_000, () => silent.clear());
    return { kind: "unknown" };
  };
  await world.signal("i", "hello", 1);
  await world.clock.advance(60_000);
  expect(appends, "it was tried again").toBeGreaterThan(1);
  expect(begun).toBe(1);
});
