/** Session ids that were used before, where nobody remembers that but the register and the leases. */
import { expect, test } from "vitest";
import { call, collectApp, defineOrchestration, defineSession } from "../../shared/definitions/index.ts";
import { noFaults } from "../../shared/testing/memory/index.ts";
import { World } from "../../shared/testing/world/world.ts";
import { removeInstance } from "../support/remove-instance.ts";

const counter = defineSession("counter", {
  init: () => ({ n: 0 }),
  calls: { add: call({ run: (state: { n: number }) => ++state.n }) },
});
const app = collectApp({
  counter,
  counts: defineOrchestration("counts", {
    async run(ctx) {
      await using session = await ctx.openSession(counter, { id: "s", creationTimeout: "5s" });
      return await session.add(undefined);
    },
  }),
});

test("defect 38: an instance begun anew opens the session that the one before it had", async () => {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  const owner = await world.orchestrator();
  await world.worker();
  const outcome = async () => world.run((await world.start("counts", null, "a")).result());
  expect(await outcome()).toBe(1);
  await world.run(owner.stop());
  await removeInstance(world, "a");
  await world.clock.advance(1_000);
  await world.orchestrator();
  expect(await outcome()).toBe(1);
  const { record } = await world.run(world.client.sessions.describe("s"));
  expect(record).toMatchObject({ phase: "closed", attachment: 2 });
});
