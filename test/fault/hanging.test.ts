/** F14, F15: code that keeps the thread, and code that hangs though its worker is well (S8). */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkSessionEvents } from "../support/lease-log.ts";
import { Stack } from "../support/stack.ts";
import { Streams } from "../support/streams.ts";

const app = fileURLToPath(new URL("../apps/hanging.ts", import.meta.url));

let stack: Stack;
let streams: Streams;
beforeAll(async () => {
  stack = await Stack.start({ app });
  streams = new Streams(stack);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const run = async (type: string, how: string, ms: number) => {
  const id = `${type}-${how}`;
  await stack.client.start("blocks", { type, how, ms }, { id });
  const value = await stack.client.result(id, { timeout: "50s" });
  await streams.checkEnded([id]);
  checkSessionEvents(await streams.history(id));
  return value;
};

it.each(["threaded", "processed"])("%s: blocking for twice the TTL keeps the session", async (type) => {
  expect(await run(type, "block", 4500)).toEqual({ first: 1, then: 2, last: 3 });
});

it("inline: blocking the worker's own loop for twice the TTL loses it", async () => {
  expect(await run("inline", "block", 4500)).toEqual({
    first: 1,
    then: { code: "session_lost", reason: "expired" },
    last: "session_lost",
  });
  // The worker itself is well again.
  expect(await run("inline", "silent", 0)).toEqual({ first: 1, then: 2, last: 3 });
});

it.each(["inline", "threaded", "processed"])(
  "%s: a call silent for longer than its heartbeat is given up, and the session with it",
  async (type) => {
    const id = `${type}-hung`;
    await stack.client.start("blocks", { type, how: "silent", ms: 60_000 }, { id });
    const value = await stack.client.result<{ first: number; then: { code: string }; last: string }>(id, {
      timeout: "50s",
    });
    expect(value.first).toBe(1);
    expect(["timeout", "session_lost"]).toContain(value.then.code);
    expect(value.last).toBe("session_lost");
    const lost = (await streams.events(id)).flatMap((event) =>
      event.kind === "session.lost" ? [event.reason] : [],
    );
    expect(lost).toEqual(["hung"]);
    await streams.checkEnded([id]);
  },
);
