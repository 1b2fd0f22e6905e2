/** Starts that are delayed can be ended before they begin. */
import { expect, test } from "vitest";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { encode } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let runs = 0;
const app = collectApp({
  job: defineOrchestration("job", {
    async run(ctx) {
      runs++;
      await ctx.sleep(10);
    },
  }),
});

let world: World;
async function open(): Promise<void> {
  runs = 0;
  world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } });
  await world.prepare();
}
const schedules = async (id: string) =>
  (await world.run(world.outside.read(world.names.timersStream, world.names.delayedStart(id)))) ?? [];
const kinds = async (id: string) => (await world.run(world.client.history(id))).map(({ kind }) => kind);

test.each([
  ["cancel", "cancelled", {}],
  ["terminate", "terminated", {}],
  ["cancel", "cancelled", { flow: { key: "k", concurrency: 1 } }],
] as const)(
  "one that is delayed is shown as pending, ends by %s as %s, and never runs",
  async (verb, status, limits) => {
    await open();
    await world.orchestrator();
    await world.run(world.client.start("job", 1, { id: "late", delay: "1m", ...limits }));
    expect(await world.run(world.client.status("late"))).toMatchObject({ status: "pending", name: "job" });
    await world.run(world.client[verb]("late", "not wanted"));
    await expect(world.run(world.client.result("late"))).rejects.toThrow("not wanted");
    expect(await world.run(world.client.status("late"))).toMatchObject({ status, name: "job", input: 1 });
    expect(await kinds("late")).toEqual(["instance.started", `instance.${status}`]);
    await world.clock.advance(2_000);
    expect(await schedules("late")).toEqual([]);
    await world.clock.advance(120_000);
    expect(runs).toBe(0);
  },
);

const points: readonly FaultPoint[] = ["turn.before_append", "turn.after_append", "turn.after_effects"];
test.each(points)("whoever dies at %s while one that is delayed ends, it never runs", async (point) => {
  await open();
  await world.run(world.client.start("job", 1, { id: "late", delay: "1m" }));
  await world.run(world.client.cancel("late"));
  await world.orchestrator({ point, count: 1 });
  await world.clock.advance(20_000);
  await world.orchestrator();
  await world.clock.advance(20_000); // the successor takes the partition over
  await expect(world.run(world.client.result("late"))).rejects.toMatchObject({ code: "cancelled" });
  expect(await kinds("late")).toEqual(["instance.started", "instance.cancelled"]);
  expect(await schedules("late"), "it would begin when retention has removed its record").toEqual([]);
  await world.clock.advance(120_000);
  expect(runs).toBe(0);
});

test("one whose time has come while nobody served it is ended too", async () => {
  await open();
  await world.run(world.client.start("job", 1, { id: "late", delay: "1s" }));
  await world.run(world.client.cancel("late"));
  await world.clock.advance(10_000);
  await world.orchestrator();
  await expect(world.run(world.client.result("late"))).rejects.toMatchObject({ code: "cancelled" });
  expect(runs).toBe(0);
});

test("a cancel of one that never was is a dead letter still", async () => {
  await open();
  await world.orchestrator();
  await expect(world.run(world.client.cancel("none"))).rejects.toMatchObject({ code: "instance_not_found" });
});

test("one that was stored a moment ago is ended, though a copy of the stream does not show it yet", async () => {
  const faults = {
    ...noFaults,
    latencyMs: [1, 1],
    scheduleDelayMs: [0, 250],
    replicaLagMs: [500, 900],
  } as const;
  runs = 0;
  world = new World({ seed: 1, app, faults, replicas: 3 });
  await world.prepare();
  await world.orchestrator();
  await world.run(world.client.start("job", 1, { id: "late", delay: "1m" }));
  const cancel = encode({ v: 1, reason: "not wanted" });
  await world.run(world.outside.publish(world.names.verb("late", "cancel"), cancel));
  await world.clock.advance(5_000);
  await expect(world.run(world.client.result("late"), 120_000)).rejects.toThrow("not wanted");
  expect(runs).toBe(0);
});
