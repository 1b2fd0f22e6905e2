/** T6 while deployments overlap: who is parked by the broken one is looked at again by whoever takes its partitions over. */
import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../shared/definitions/index.ts";
import { World } from "../support/engine-world.ts";
import { noFaults } from "../support/memory-bus.ts";

const quick = defineActivity("quick", { run: () => "done" });
const deployment = ({ broken }: { broken: boolean }) =>
  collectApp({
    quick,
    tricky: defineOrchestration("tricky", {
      run: async (ctx) => {
        if (broken) await ctx.sleep(1);
        await ctx.run(quick, null);
        return ctx.waitForSignal("go");
      },
    }),
  });

test("instances parked by a broken deployment go on when its partitions move to a fixed one", async () => {
  const fixed = deployment({ broken: false });
  const world = new World({ seed: 1, app: fixed, faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  const first = await world.orchestrator();
  await world.worker();
  const ids = Array.from({ length: 8 }, (_, n) => `a${n}`);
  const handles = [];
  for (const id of ids) handles.push(await world.start("tricky", null, id));
  await world.clock.advance(2000);
  await world.run(first.stop());
  const broken = await world.orchestrator(undefined, { app: deployment({ broken: true }) });
  for (const id of ids) await world.signal(id, "go", id);
  await world.clock.advance(3000);
  const statuses = async () => (await world.run(world.client.list())).map(({ status }) => status);
  expect(await statuses()).toEqual(ids.map(() => "parked"));

  // Both at once: the broken one still has its share, and parks it anew whenever somebody asks.
  await world.orchestrator();
  await world.clock.advance(10_000);
  expect(await statuses()).toContain("parked");
  await world.run(broken.stop());
  expect(await world.run(Promise.all(handles.map((handle) => handle.result())), 60_000)).toEqual(ids);
});
