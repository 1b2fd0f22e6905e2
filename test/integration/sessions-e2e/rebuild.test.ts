/** Bare sessions, whose state is the application's own business, and the policy that gives it back. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Journal } from "../../support/journal.ts";
import { checkSessionEvents } from "../../support/lease-log.ts";
import { Stack } from "../../support/stack.ts";
import { Streams } from "../../support/streams.ts";

const app = fileURLToPath(new URL("../../apps/held.ts", import.meta.url));

const journal = new Journal();
let stack: Stack;
let streams: Streams;
beforeAll(async () => {
  stack = await Stack.start({ app, env: journal.env });
  streams = new Streams(stack);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  journal[Symbol.dispose]();
});

it("concurrent cold calls cause one rebuild, and then all succeed", async () => {
  await stack.client.start("remembering", { ms: 0, cold: true }, { id: "cold" });
  const { answers } = await stack.client.result<{ answers: string[] }>("cold", { timeout: "30s" });
  expect(answers).toEqual(Array.from({ length: 5 }, () => "the same again"));
  expect(journal.lines("learn cold"), "at first, and once as the rebuild").toHaveLength(2);
  const events = await streams.events("cold");
  const rebuilds = events.filter((event) => event.kind === "activity.scheduled" && event.by === "engine");
  expect(rebuilds).toHaveLength(1);
  expect(events.map((event) => event.kind)).not.toContain("session.lost");
  await streams.checkEnded(["cold"]);
  checkSessionEvents(await streams.history("cold"));
});

it("a rebuild that misses the state itself is not rebuilt: it ends what waits for it", async () => {
  await stack.client.start("hopeless-session", null, { id: "hopeless" });
  const { outcome, later } = await stack.client.result<{ outcome: unknown; later: string }>("hopeless", {
    timeout: "30s",
  });
  expect(outcome).toMatchObject({
    code: "session_lost",
    text: expect.stringContaining("nothing to rebuild from"),
  });
  expect(later).toBe("session_unusable");
  expect(journal.lines("amnesia hopeless")).toHaveLength(1);
  expect(await streams.kinds("hopeless")).toContain("session.failed");
  await streams.checkEnded(["hopeless"]);
  await streams.untilQuiet();
});
