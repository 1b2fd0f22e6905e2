/** What people are shown of an instance is in its history, also where it is parked or goes on again (T2). */
import { expect, test } from "vitest";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let world: World;
let broken = false;

const quick = defineActivity("quick", { run: () => "done" });
const together = defineActivity("together", {
  run: () => new Promise<void>((resolve) => void world.clock.after(100, resolve)),
});
const tricky = defineOrchestration("tricky", {
  run: async (ctx) => {
    if (broken) await ctx.sleep(1);
    await ctx.run(quick, null);
    return ctx.waitForSignal("go");
  },
});
const wide = defineOrchestration("wide", {
  run: async (ctx) => {
    if (broken) await ctx.sleep(1);
    await Promise.all(Array.from({ length: 6 }, () => ctx.run(together, null)));
    await ctx.waitForSignal("go");
  },
});
const app = collectApp({ quick, together, tricky, wide });

async function open(): Promise<void> {
  broken = false;
  world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] }, alwaysReplay: true });
  await world.prepare();
}

const kinds = async (id: string) =>
  (await world.history(id))?.flatMap(({ events }) => events.map(({ kind }) => kind as string)) ?? [];

test("nobody is told of an end that is not in the history", async () => {
  await open();
  const first = await world.orchestrator();
  await world.worker();
  const handle = await world.start("tricky", null, "a");
  await world.clock.advance(1000);
  broken = true;
  await world.signal("a", "go", "the result");
  await world.clock.advance(1000);
  expect(await world.run(world.client.status("a"))).toMatchObject({ status: "parked" });
  first.kill();
  await world.clock.advance(5000);

  broken = false;
  let told: unknown = "nothing";
  handle.result().then(
    (result) => {
      told = result;
    },
    () => undefined,
  );
  await world.orchestrator({ point: "turn.before_append", count: 1 });
  await world.clock.advance(1000);
  expect(await kinds("a"), "it died before the append").not.toContain("instance.completed");
  const [shown] = await world.run(world.client.list());
  expect({ told, shown: shown?.status }).toEqual({ told: "nothing", shown: "parked" });
});

test("an end is shown, whatever an owner meant to record before it died", async () => {
  await open();
  await world.orchestrator({ point: "turn.before_append", count: 3 });
  await world.worker();
  await world.start("wide", null, "a");
  await world.clock.advance(30);
  broken = true;
  await world.clock.advance(400);
  await world.run(world.client.terminate("a"));
  await world.clock.advance(100);
  await world.orchestrator();
  await world.clock.advance(60_000);
  expect(await kinds("a")).toContain("instance.terminated");
  expect((await world.run(world.client.list())).map(({ status }) => status)).toEqual(["terminated"]);
});

test("an owner that repairs the turn before does not tell what it has not recorded itself", async () => {
  await open();
  // Read whenever a point is reached: the effects of the first turn fail half-way, as with a bus that does not answer;
  // then it dies before the append of the second.
  let reached = 0;
  await world.orchestrator({
    count: 1,
    get point(): FaultPoint {
      reached++;
      if (reached === 3) throw new Fault("transient", { code: "bus_unavailable", message: "not now" });
      return reached > 4 ? "turn.before_append" : "continue.between_executions";
    },
  });
  const handle = await world.start("tricky", null, "a");
  let told: unknown = "nothing";
  handle.result().catch((error: unknown) => {
    told = String(error);
  });
  await world.run(world.client.terminate("a"));
  await world.clock.advance(2000);
  expect(await kinds("a"), "it died before the append").not.toContain("instance.terminated");
  const shown = (await world.run(world.client.list())).map(({ status }) => status);
  expect({ told, shown }).toEqual({ told: "nothing", shown: [] });
});

test.each(["turn.after_append", "effects.half_published", "turn.after_effects"] as const)(
  "that it goes on again is told, also when its owner dies at %s",
  async (point) => {
    await open();
    const first = await world.orchestrator();
    await world.worker();
    await world.start("wide", null, "a");
    await world.clock.advance(50);
    broken = true;
    await world.clock.advance(3000);
    expect(await world.run(world.client.status("a"))).toMatchObject({ status: "parked" });
    first.kill();
    await world.clock.advance(5000);
    broken = false;
    await world.orchestrator({ point, count: 1 }).catch(() => undefined);
    await world.clock.advance(10_000);
    await world.orchestrator();
    await world.clock.advance(20_000);
    expect(await world.run(world.client.status("a"))).toMatchObject({ status: "running" });
    await world.signal("a", "go", 1);
    await world.clock.advance(20_000);
    expect(await world.run(world.client.status("a"))).toMatchObject({ status: "completed" });
  },
);
