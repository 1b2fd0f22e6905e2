import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Streams } from "../support/nats/streams.ts";
import { Journal } from "../support/processes/journal.ts";
import { Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/durable.ts", import.meta.url));

test("F11: one of two orchestrators falls asleep before an append and wakes late: it is fenced, nothing is doubled", async () => {
  using journal = new Journal();
  const env = { ...journal.env, HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000" };
  await using stack = await Stack.start({ app, watchers: 0, orchestrators: 1, env });
  // In the middle of a turn: its commit is made up, and not yet sent.
  const fault = { HOLDFAST_ORCHESTRATOR_FAULT: "turn.before_append:60:stop" };
  const zombie = await stack.run("orchestrator", fault);
  await until("it has its share", () => zombie.log().split('"kind":"partition.gained"').length > 8);
  const ids = Array.from({ length: 100 }, (_, i) => `z${i}`);
  const handles = await Promise.all(ids.map((id) => stack.client.start("steps", { n: 6, ms: 10 }, { id })));
  // Whatever the sleeper had is finished by the other one.
  expect(await Promise.all(handles.map((handle) => handle.result({ timeout: "50s" })))).toEqual(
    ids.map(() => 6),
  );
  expect(zombie.log()).not.toContain('"kind":"turn.fenced"');
  zombie.resume();
  await until("its late append was fenced", () => zombie.log().includes('"kind":"turn.fenced"'));
  await until("it knows that its leases are gone", () => zombie.log().includes('"kind":"partition.lost"'));
  const streams = new Streams(stack);
  await streams.checkEnded(ids);
  expect(journal.lines("add")).toHaveLength(ids.length * 6);
  // It joins again and takes its share; new instances are served by both.
  await until("it has partitions again", () => {
    const log = zombie.log();
    return log.lastIndexOf('"kind":"partition.gained"') > log.lastIndexOf('"kind":"partition.lost"');
  });
  const later = ids.slice(0, 50).map((id) => `${id}-later`);
  await Promise.all(later.map((id) => stack.client.start("steps", { n: 2 }, { id })));
  const results = later.map((id) => stack.client.result(id, { timeout: "30s", known: true }));
  expect(await Promise.all(results)).toEqual(later.map(() => 2));
  await streams.checkEnded(later);
  await streams.untilQuiet();
});
