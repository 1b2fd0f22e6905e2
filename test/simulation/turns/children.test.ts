/** Children let go in the turn that asked for them, and children whose id is taken. */
import { expect, test } from "vitest";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const waits = defineOrchestration("waits", { run: (ctx) => ctx.waitForSignal("never") });
const fickle = defineOrchestration("fickle", {
  async run(ctx) {
    const scope = ctx.scope((inner) => inner.child(waits, null, { id: "child" }));
    scope.cancel("changed its mind");
    return await scope.result.catch((error: { code: string }) => error.code);
  },
});
const quick = defineOrchestration("quick", { run: async () => "from the child" });
const repeats = defineOrchestration("repeats", {
  async run(ctx, before: unknown): Promise<unknown> {
    const now = await ctx
      .child(quick, null, { id: "always-the-same" })
      .catch((error: { code: string }) => error.code);
    return before === null ? ctx.continueAsNew(now) : [before, now];
  },
});
const app = collectApp({ waits, fickle, quick, repeats });

test("a cancel does not overtake the start: the child ends cancelled, or was never started", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const world = new World({ seed, app, faults: someFaults });
    await world.prepare();
    await world.orchestrator();
    const handle = await world.start("fickle", null, "parent");
    expect(await world.run(handle.result(), 600_000)).toBe("cancelled");
    // The cancel may be lost on its way to the orchestrator: it comes again after the acknowledgement wait.
    await world.clock.advance(120_000);
    const child = await world
      .run(world.client.status("child"))
      .catch((error: { code: string }) => error.code);
    const status = typeof child === "string" ? child : child.status;
    expect(["cancelled", "instance_not_found"], `seed ${seed}`).toContain(status);
  }
});

test("an execution that gives its child the id of the one before is told that it exists", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const world = new World({ seed, app, faults: someFaults });
    await world.prepare();
    await world.orchestrator();
    const handle = await world.start("repeats", null, "parent");
    expect(await world.run(handle.result(), 600_000), `seed ${seed}`).toEqual([
      "from the child",
      "instance_exists",
    ]);
  }
});

test("a stranger who had the child's id is not cancelled with it", async () => {
  const world = new World({ seed: 3, app, faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  await world.orchestrator();
  await world.start("waits", null, "child");
  await world.clock.advance(1000);
  const handle = await world.start("fickle", null, "parent");
  expect(await world.run(handle.result(), 60_000)).toBe("cancelled");
  await world.clock.advance(5000);
  expect(await world.run(world.client.status("child"))).toMatchObject({ status: "running" });
  const { letters } = await world.run(world.client.dead.list());
  expect(letters, "nobody is to blame").toEqual([]);
  // Others may end it.
  await world.run(world.client.cancel("child"));
  await world.clock.advance(5000);
  expect(await world.run(world.client.status("child"))).toMatchObject({ status: "cancelled" });
});
