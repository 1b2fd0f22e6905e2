/** A worker that is stopped while the server is away ends, and leaves no entry that says it is alive. */
import { expect, test } from "vitest";
import { collectApp, defineActivity } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

test.each([500, 1_500, 3_000])("stops though the server is away for %i ms", async (awayMs) => {
  const step = defineActivity("step", { run: async () => 1 });
  const world = new World({ seed: 1, app: collectApp({ step }), faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  await world.orchestrator();
  const worker = await world.worker();
  await world.clock.advance(1_000);
  world.broker.stop();
  const stopped = worker.stop();
  await world.clock.advance(awayMs);
  world.broker.start();
  await world.run(stopped, 60_000);
  const { consumers } = world.broker.streams.get(world.names.sessionsStream) ?? {};
  expect([...(consumers?.keys() ?? [])], "consumers of a worker that is gone").toEqual([]);
});
