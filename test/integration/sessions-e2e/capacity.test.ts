/** At the cap: what is held is served, plain activities do not notice, and everybody's turn comes. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { LeaseLog } from "../../../shared/verify/index.ts";
import { Streams } from "../../support/nats/streams.ts";
import { Journal } from "../../support/processes/journal.ts";
import { Stack } from "../../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../apps/held.ts", import.meta.url));

test("I14, S10: thirty sessions share six places; nobody has more than its cap and nobody starves", async () => {
  using journal = new Journal();
  const env = { ...journal.env, WORKER_MAX_SESSIONS: "3", WORKER_ACTIVITY_SLOTS: "5" };
  await using stack = await Stack.start({ app, workers: 2, env });
  await using leases = await LeaseLog.start(stack);
  const streams = new Streams(stack);
  const ids = Array.from({ length: 30 }, (_, i) => `cap-${i}`);
  await Promise.all(ids.map((id) => stack.client.start("working", { calls: 3, ms: 50 }, { id })));
  await journal.until("count", 10);
  // While all places are taken.
  const plain = await stack.client.start("steps", { n: 10, ms: 5 }, { id: "plain" });
  expect(await plain.result({ timeout: "20s" })).toBe(10);
  const done = journal.lines("shutdown").length;
  const results = ids.map((id) => stack.client.result(id, { timeout: "50s" }));
  for (const value of await Promise.all(results)) expect(value).toMatchObject({ seen: [1, 2, 3] });
  console.info(`plain activities were done when ${done} of ${ids.length} sessions were`);
  await streams.checkEnded(ids);
  expect(leases.violations()).toEqual([]);
  for (const holder of new Set(leases.holdings.map((one) => one.holder))) {
    expect(
      leases.mostAtOnce((one) => one.holder === holder),
      holder,
    ).toBeLessThanOrEqual(3);
  }
  await streams.untilQuiet();
});
