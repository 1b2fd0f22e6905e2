import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { TestNats } from "../support/nats/nats-server.ts";
import { Streams } from "../support/nats/streams.ts";
import { Journal } from "../support/processes/journal.ts";
import { Stack } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/durable.ts", import.meta.url));

const blows = {
  "dies under load and comes back": async (nats: TestNats) => {
    await nats.kill();
    await nats.restart();
  },
  // It closes stream by stream, and answers for a while as if some were not there.
  "is stopped and started under load": (nats: TestNats) => nats.restart(),
};

test.each(Object.entries(blows))(
  "F17: nats-server %s; nothing that was acknowledged is lost",
  async (_, strike) => {
    using journal = new Journal();
    const env = { ...journal.env, HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "3000", WORKER_ACK_WAIT: "2s" };
    await using stack = await Stack.start({ app, watchers: 0, env });
    const acknowledged: string[] = [];
    const unanswered: unknown[] = [];
    let number = 0;
    let stopping = false;
    // Each starts something and waits for its end, again and again. What was not answered may or may not have arrived.
    const client = async () => {
      while (!stopping) {
        const id = `n${number++}`;
        const started = await stack.client
          .start("steps", { n: 3, ms: 20 }, { id })
          .catch((error: unknown) => {
            unanswered.push(error);
          });
        if (!started) continue;
        acknowledged.push(id);
        expect(await started.result({ timeout: "40s" })).toBe(3);
      }
    };
    const clients = Promise.all(Array.from({ length: 16 }, client));
    const strikes = async () => {
      for (let blow = 0; blow < 2; blow++) {
        await journal.until("add", journal.lines("add").length + 100);
        const before = acknowledged.length;
        await strike(stack.nats);
        await journal.until("add", journal.lines("add").length + 50);
        expect(acknowledged.length, "clients get through again").toBeGreaterThan(before);
      }
      stopping = true;
    };
    await Promise.all([clients, strikes()]);
    for (const error of unanswered) expect(error).toMatchObject({ code: expect.any(String) });
    const streams = new Streams(stack);
    await streams.checkEnded(acknowledged);
    await streams.untilQuiet();
  },
  120_000,
);

test("F19: nats-server hangs for a while under load, with its connections open", async () => {
  using journal = new Journal();
  const env = { ...journal.env, HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000", WORKER_ACK_WAIT: "1s" };
  await using stack = await Stack.start({ app, watchers: 0, env });
  const ids = Array.from({ length: 50 }, (_, i) => `h${i}`);
  const handles = await Promise.all(ids.map((id) => stack.client.start("steps", { n: 5, ms: 20 }, { id })));
  await journal.until("add", 80);
  stack.nats.pause();
  // Nothing to wait for: no message arrives while the server does not answer.
  await new Promise((resolve) => setTimeout(resolve, 6000));
  stack.nats.resume();
  expect(await Promise.all(handles.map((handle) => handle.result({ timeout: "40s" })))).toEqual(
    ids.map(() => 5),
  );
  const streams = new Streams(stack);
  await streams.checkEnded(ids);
  await streams.untilQuiet();
});
