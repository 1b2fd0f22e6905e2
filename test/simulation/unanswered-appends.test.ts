/**
 * A history that stops answering in the middle of an append, for longer than a turn waits: the turn is tried again from
 * what the history says then, and what the commit asked for gets out, whether it was stored or not (T3).
 */
import { expect, test } from "vitest";
import type { PublishOutcome } from "../../shared/bus/index.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../shared/definitions/index.ts";
import { World } from "../support/engine-world.ts";
import { checkHistory } from "../support/history-laws.ts";
import { noFaults } from "../support/memory-bus.ts";

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
const app = collectApp({ brief, steps });

const cases = [1, 2, 3, 4, 5].flatMap((nth) => [[nth, true] as const, [nth, false] as const]);

test.each(cases)("the append number %i, stored %s", async (nth, stored) => {
  world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] } });
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
