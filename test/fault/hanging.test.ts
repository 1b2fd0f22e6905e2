/** F14, F15: code that keeps the thread, and code that hangs though its worker is well (S8). */
import { expect, it } from "vitest";
import { installation } from "../support/processes/installation.ts";
import { until } from "../support/processes/stack.ts";

const world = installation({ app: "hanging", env: { WORKER_REGISTER_EVERY: "300ms" } });
const { start, result } = world;

const run = async (type: string, how: string, ms: number) => {
  const id = `${type}-${how}`;
  await start("blocks", { type, how, ms }, id);
  return result(id, "50s");
};

it.each(["threaded", "processed"])("%s: blocking for twice the TTL keeps the session", async (type) => {
  const finished = run(type, "block", 4500);
  // The host is pinged every 2 s; the result is reported with the worker's next entry.
  const explained = await until("the blocked host is named", async () => {
    const [session] = await world.client.sessions.list({ type });
    const said = session && (await world.client.sessions.describe(session.sessionId)).explanation;
    return said?.find((sentence) => /has not answered/.test(sentence));
  });
  expect(explained).toMatch(/^host .*, which runs calls of .*: code there blocks, and the session waits$/);
  expect(await finished).toEqual({ first: 1, then: 2, last: 3 });
});

it("inline: blocking the worker's own loop for twice the TTL loses it", async () => {
  expect(await run("inline", "block", 4500)).toEqual({
    first: 1,
    then: { code: "session_lost", reason: "hung" },
    last: "session_lost",
  });
  // The worker itself is well again.
  expect(await run("inline", "silent", 0)).toEqual({ first: 1, then: 2, last: 3 });
});

it("defect 19: an inline init that blocks is told as the stall it is, not as an expired lease", async () => {
  await start("opensBusy", null, "busy-init");
  const outcome = await result<{ code: string; message: string }>("busy-init", "50s");
  const lost = (await world.streams.events("busy-init")).flatMap((event) =>
    event.kind === "session.lost" ? [{ reason: event.reason, detail: event.detail }] : [],
  );
  expect(lost).toEqual([
    { reason: "hung", detail: expect.stringMatching(/blocked its worker's event loop/) },
  ]);
  expect(outcome.message).toMatch(/hung|blocked/);
});

it.each(["inline", "threaded", "processed"])(
  "%s: a call silent for longer than its heartbeat is given up, and the session with it",
  async (type) => {
    const id = `${type}-hung`;
    await start("blocks", { type, how: "silent", ms: 60_000 }, id);
    const value = await result<{ first: number; then: { code: string }; last: string }>(id, "50s");
    expect(value.first).toBe(1);
    expect(["timeout", "session_lost"]).toContain(value.then.code);
    expect(value.last).toBe("session_lost");
    const lost = (await world.streams.events(id)).flatMap((event) =>
      event.kind === "session.lost" ? [event.reason] : [],
    );
    expect(lost).toEqual(["hung"]);
  },
);
