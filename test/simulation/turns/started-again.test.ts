/**
 * A start of an instance that ended long ago returns its end at once, not with the next poll. In virtual
 * time.
 */
import { expect, test } from "vitest";
import { collectApp } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { simulatedApp } from "../../apps/simulated.ts";

const minute = 60_000;

test.each([
  ["the server knows the first start", 0],
  ["the server has forgotten the first start, the instance has not", 10 * minute],
])("%s", async (_case, laterMs) => {
  let world: World;
  const app = collectApp(simulatedApp(() => world));
  world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  await world.worker();
  const first = await world.start("sequence", 2, "again");
  expect(await world.run(first.result())).toBe(2);
  const before = await world.history("again");
  await world.clock.advance(laterMs);

  const askedAt = world.clock.monotonic();
  const second = await world.start("sequence", 2, "again");
  expect(await world.run(second.result())).toBe(2);
  expect(world.clock.monotonic() - askedAt).toBeLessThan(100);
  expect(await world.history("again")).toEqual(before);
});
