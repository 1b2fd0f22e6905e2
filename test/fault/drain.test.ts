/** F9, S13: SIGTERM takes a worker out of service; what it holds goes elsewhere, or is told why it is over. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Journal } from "../support/journal.ts";
import { checkSessionEvents, LeaseLog } from "../support/lease-log.ts";
import { Stack, until } from "../support/stack.ts";
import { Streams } from "../support/streams.ts";

const app = fileURLToPath(new URL("../apps/held.ts", import.meta.url));

const journal = new Journal();
let stack: Stack;
let streams: Streams;
let leases: LeaseLog;
beforeAll(async () => {
  const env = {
    ...journal.env,
    WORKER_DRAIN_TIMEOUT: "5s",
    // What was sent to a worker that has gone is swept up soon.
    WATCHER_DEAD_AFTER: "2s",
    WATCHER_SWEEP_EVERY: "1s",
  };
  stack = await Stack.start({ app, workers: 0, env });
  streams = new Streams(stack);
  leases = await LeaseLog.start(stack);
});
afterAll(async () => {
  await leases?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
  journal[Symbol.dispose]();
});

const result = async <T>(id: string): Promise<T> => {
  const value = await stack.client.result<T>(id, { timeout: "40s" });
  await streams.checkEnded([id]);
  checkSessionEvents(await streams.history(id));
  leases.checkOwners();
  return value;
};

it("reclaim goes on elsewhere at once, fail is told `drained`, running calls are finished first", async () => {
  const first = await stack.run("worker");
  const policies = ["reclaim", "fail"];
  const input = { calls: 3, ms: 1000, waits: true };
  for (const onLost of policies) {
    await stack.client.start("working", { ...input, onLost }, { id: onLost });
    await journal.until(`count ${onLost}`);
  }
  await stack.run("worker");
  for (const id of policies) {
    await stack.client.signal(id, "go");
    await journal.until(`count ${id}`, 2);
  }
  const stoppedAt = Date.now();
  await first.stop();
  expect(await first.exited).toBe(0);
  expect(Date.now() - stoppedAt).toBeLessThan(15_000);

  const reclaimed = await result<{ seen: unknown[] }>("reclaim");
  // The call under way was finished on the first worker; the next one counts from the beginning on the second.
  expect(reclaimed.seen).toEqual([1, 2, 1]);
  const failed = await result<{ seen: { code: string; reason: string }[] }>("fail");
  expect(failed.seen).toEqual([1, 2, expect.objectContaining({ code: "session_lost", reason: "drained" })]);
  // Given back, not waited for: no expiry anywhere.
  expect(leases.holdings.map((holding) => holding.end?.kind)).not.toContain("expired");
  expect(journal.lines("aborted")).toEqual([]);
});

it("a drain asked over the bus does the same, and the process ends", async () => {
  const { client } = stack;
  const before = stack.of("worker").filter((worker) => !worker.gone);
  await client.start("working", { calls: 3, ms: 500, onLost: "reclaim", waits: true }, { id: "asked" });
  const [line = ""] = await journal.until("count asked");
  const [, , workerId = ""] = line.split(" ");
  await stack.run("worker");
  await client.workers.drain(workerId);
  // Until then it may still serve what comes.
  await until("it has given the session up", async () => {
    const history = await client.history("asked");
    return history.some((event) => event.kind === "session.lost");
  });
  await client.signal("asked", "go");
  const { seen } = await result<{ seen: unknown[] }>("asked");
  expect(seen).toEqual([1, 1, 2]);
  await Promise.all(before.map((worker) => worker.exited));
  await streams.untilQuiet();
});
