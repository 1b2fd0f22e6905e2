/**
 * `whenFull: "fail"`: an opening that fails at once when the quota is reached, also behind others that wait
 * (CLAIM-4).
 */
import { expect, test } from "vitest";
import {
  call,
  collectApp,
  defineOrchestration,
  defineSession,
  defineSignal,
} from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const scarce = defineSession("scarce", {
  maxTotal: 1,
  init: () => ({}),
  calls: { ping: call({ run: () => "pong" }) },
});
const end = defineSignal("end");
const uses = defineOrchestration("uses", {
  async run(ctx, { whenFull, keep }: { whenFull?: "wait" | "fail"; keep?: boolean }) {
    await using session = await ctx.openSession(scarce, {
      creationTimeout: "2h",
      ...(whenFull && { whenFull }),
    });
    const answer = await session.ping(undefined);
    if (keep) {
      ctx.setStatus("holds");
      await ctx.waitForSignal(end);
    }
    return answer;
  },
});

async function full(workers: number) {
  const world = new World({ seed: 11, app: collectApp({ scarce, uses }), faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  for (let i = 0; i < workers; i++) await world.worker();
  const keeper = await world.start("uses", { keep: true }, "keeper");
  for (let i = 0; i < 100 && world.count("session.attached") === 0; i++) await world.clock.advance(100);
  expect(world.count("session.attached")).toBe(1);
  return { world, keeper };
}

test.each([1, 3])("with %i worker(s): the quota is named, those who wait go on waiting", async (workers) => {
  const { world, keeper } = await full(workers);
  const patient = await Promise.all(
    [1, 2, 3, 4].map((i) => world.start("uses", { whenFull: "wait" }, `patient-${i}`)),
  );
  await world.clock.advance(2000);
  const hasty = await world.start("uses", { whenFull: "fail" }, "hasty");
  const failure = await world.run(
    hasty.result().then(
      () => undefined,
      (error: unknown) => error,
    ),
    60_000,
  );
  expect(failure).toMatchObject({
    code: "session_quota_exceeded",
    details: { quota: "type scarce is at 1 of 1 in the whole installation (maxTotal)" },
  });
  expect(world.count("session.attached"), "nobody else got the seat").toBe(1);
  await world.run(world.client.signal("keeper", end));
  for (const handle of [keeper, ...patient]) expect(await world.run(handle.result(), 600_000)).toBe("pong");
  // Its own claim, shown to a worker twice, must not stand in its own way.
  const last = await world.start("uses", { whenFull: "fail" }, "in-time");
  expect(await world.run(last.result(), 60_000), "while there is room it opens").toBe("pong");
});
