/** A signal takes one round trip: whether its instance has ended is looked up while it is on its way. */
import { expect, test } from "vitest";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const app = collectApp({
  waits: defineOrchestration("waits", { run: async (ctx) => ctx.waitForSignal("go") }),
});

/** Reads of summaries by the client, answered when the test lets them. */
function holdReads({ outside, names }: World): { asked(): number; answer(): void } {
  const waiting: (() => void)[] = [];
  let asked = 0;
  const last = outside.last.bind(outside);
  outside.last = async (stream, subject, options) => {
    if (stream === `KV_${names.bucket("instances")}`) {
      asked++;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    return last(stream, subject, options);
  };
  const answer = () => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { asked: () => asked, answer };
}

async function waitingWorld(): Promise<World> {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  await world.start("waits", null, "one");
  await world.clock.advance(1_000);
  return world;
}

test("a signal is stored before the summary was read", async () => {
  const world = await waitingWorld();
  const reads = holdReads(world);
  const sent = world.client.signal("one", "go", 7);
  await world.clock.advance(1_000);
  expect(reads.asked(), "the summary is still to be read").toBe(1);
  const history = await world.run(world.client.history("one"));
  expect(history.map(({ kind }) => kind)).toContain("instance.completed");
  reads.answer();
  await world.run(sent);
});

test("an instance that ended because of the signal has not ended before it", async () => {
  const world = await waitingWorld();
  const reads = holdReads(world);
  const sent = world.client.signal("one", "go", 7);
  await world.clock.advance(1_000);
  reads.answer();
  await expect(world.run(sent)).resolves.toBeUndefined();
  const late = world.client.signal("one", "go", 8).catch((error: unknown) => error);
  await world.clock.advance(1_000);
  reads.answer();
  expect(await world.run(late)).toMatchObject({ code: "instance_ended", details: { status: "completed" } });
});

test("a client that may not read summaries can signal", async () => {
  const world = await waitingWorld();
  world.outside.last = async () => {
    throw new Error("not permitted");
  };
  await world.run(world.client.signal("one", "go", 7));
});
