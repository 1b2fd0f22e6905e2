/** Session ids that were used before, when only the register and the leases show it. */
import { expect, test } from "vitest";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { LeaseLog, violationLines } from "../../../shared/verify/index.ts";
import { removeInstance } from "../../support/worlds/remove-instance.ts";

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
  // Closes it at a signal, and opens it again.
  twice: defineOrchestration("twice", {
    async run(ctx) {
      const first = await ctx.openSession(counter, { id: "s" });
      await first.add(undefined);
      await ctx.waitForSignal("close");
      await first.close();
      await using second = await ctx.openSession(counter, { id: "s" });
      return await second.add(undefined);
    },
  }),
});

test("defect 38: a closed session's id is used again while a dead holder's lease lasts, and the checker agrees", async () => {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  await using leases = await world.run(LeaseLog.start({ bus: world.outside, names: world.names }));
  await world.orchestrator();
  const holder = await world.worker();
  await world.watcher();
  const handle = await world.start("twice", null, "a");
  await world.clock.advance(1_000);
  holder.kill();
  await world.signal("a", "close", null);
  await world.worker();
  expect(await world.run(handle.result())).toBe(1);
  const [first, second] = leases.of("s");
  expect(first?.end, "the dead holder's lease lasts").toBeUndefined();
  expect(second?.holder).not.toBe(first?.holder);
  expect(leases.violations()).toHaveLength(1); // the leases alone do not tell that it was closed
  expect(violationLines(await world.verify({ leases }))).toEqual([]);
});

test("defect 38: a closed session's id is anybody's at once, behind the attachments it had", async () => {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  await world.worker();
  for (const id of ["a", "b", "c"])
    expect(await world.run((await world.start("counts", null, id)).result()), id).toBe(1);
  const { record } = await world.run(world.client.sessions.describe("s"));
  // The holder before may still take the attachment after its last one (S14).
  expect(record).toMatchObject({ instanceId: "c", phase: "closed", attachment: 5 });
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
