import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Streams } from "../support/nats/streams.ts";
import { Journal } from "../support/processes/journal.ts";
import { Stack } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/durable.ts", import.meta.url));

test("F5, F6: the only orchestrator dies among 200 running instances; another one finishes them all", async () => {
  using journal = new Journal();
  const env = { ...journal.env, HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000" };
  await using stack = await Stack.start({ app, watchers: 0, env });
  const ids = Array.from({ length: 200 }, (_, i) => `k${i}`);
  const handles = await Promise.all(ids.map((id) => stack.client.start("steps", { n: 5, ms: 10 }, { id })));
  await journal.until("add", 300);
  stack.of("orchestrator")[0]?.kill("SIGKILL");
  const done = journal.lines("add").length;
  expect(done, "killed in the middle").toBeLessThan(900);
  await stack.run("orchestrator");
  expect(await Promise.all(handles.map((handle) => handle.result({ timeout: "120s" })))).toEqual(
    ids.map(() => 5),
  );
  const streams = new Streams(stack);
  await streams.checkEnded(ids);
  for (const id of ids) {
    const kinds = await streams.kinds(id);
    expect(
      kinds.filter((kind) => kind === "activity.completed"),
      id,
    ).toHaveLength(5);
  }
  await streams.untilQuiet();
  // Published twice is run once: the message ids of the repetition are the same (T2).
  expect(journal.lines("add")).toHaveLength(1000);
}, 240_000); // as long as what it waits for may take on a busy machine
