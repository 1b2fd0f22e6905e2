/**
 * T6 while deployments overlap: instances that the broken build parked are tried again by the next owner of
 * their partitions.
 */
import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const quick = defineActivity("quick", { run: () => "done" });
const deployment = ({ broken }: { broken: boolean }) =>
  collectApp({
    quick,
    tricky: defineOrchestration("tricky", {
      run: async (ctx) => {
        if (broken) await ctx.sleep(1);
        await ctx.run(quick, null);
        const word = await ctx.waitForSignal("go");
        await ctx.run(quick, null);
        return word;
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

  // Both at once: the broken build still has its share, and parks the instance again at each message.
  await world.orchestrator();
  await world.clock.advance(10_000);
  expect(await statuses()).toContain("parked");
  await world.run(broken.stop());
  expect(await world.run(Promise.all(handles.map((handle) => handle.result())), 60_000)).toEqual(ids);
});

test.each(
  (["turn.after_append", "effects.half_published", "turn.after_effects"] as const).flatMap((point) =>
    [1, 2].map((count) => ({ point, count })),
  ),
)("an owner that dies while it lets a parked one go on is followed: $point, $count", async (death) => {
  const fixed = deployment({ broken: false });
  const world = new World({ seed: 1, app: fixed, faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  const first = await world.orchestrator();
  await world.worker();
  const handle = await world.start("tricky", null, "a");
  await world.clock.advance(2000);
  await world.run(first.stop());
  const broken = await world.orchestrator(undefined, { app: deployment({ broken: true }) });
  await world.signal("a", "go", "word");
  await world.clock.advance(3000);
  expect(await world.run(handle.status())).toMatchObject({ status: "parked" });
  await world.run(broken.stop());
  const dying = await world.orchestrator(death);
  await world.clock.advance(5000);
  dying.kill();
  await world.orchestrator();
  expect(await world.run(handle.result(), 300_000)).toBe("word");
});
