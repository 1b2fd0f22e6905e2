/** Activities on a session without a type: side by side unless the opening asked for order. */
import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { fixedGeneration, type Generation } from "../../../shared/fleet/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

/** Two activities; each ends when the other has begun, or after a long wait. */
async function day({ concurrency, generation }: { concurrency?: number; generation?: Generation }) {
  const log: string[] = [];
  let meeting: () => void = () => undefined;
  const met = new Promise<void>((resolve) => {
    meeting = resolve;
  });
  let inside = 0;
  let world: World;
  const meet = defineActivity("meet", {
    async run(_ctx, name: string) {
      log.push(`${name} begins`);
      if (++inside === 2) meeting();
      const alone = new Promise<void>((resolve) => world.clock.after(5000, resolve));
      await Promise.race([met, alone]);
      inside--;
      log.push(`${name} ends`);
    },
  });
  const flow = defineOrchestration("flow", {
    async run(ctx) {
      await using session = await ctx.openSession(concurrency === undefined ? {} : { concurrency });
      await Promise.all([session.run(meet, "a"), session.run(meet, "b")]);
    },
  });
  world = new World({
    ...{ seed: 7, app: collectApp({ meet, flow }), faults: noFaults },
    ...(generation && { generation }),
  });
  await world.prepare();
  await world.orchestrator();
  await world.worker();
  await world.run((await world.start("flow", null, "one")).result(), 600_000);
  return log;
}

test("two activities joined by Promise.all are inside at the same time", async () => {
  const log = await day({});
  expect(log.slice(0, 2).sort()).toEqual(["a begins", "b begins"]);
});

test("concurrency: 1 keeps the order in which they were issued", async () => {
  expect(await day({ concurrency: 1 })).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("while somebody of generation 1 is alive, one at a time as he does it", async () => {
  expect(await day({ generation: fixedGeneration(1) })).toEqual([
    ...["a begins", "a ends"],
    ...["b begins", "b ends"],
  ]);
});
