/** F9, S13: SIGTERM takes a worker out of service; its sessions go elsewhere or end with a reason. */
import { expect, it } from "vitest";
import { installation } from "../support/processes/installation.ts";
import { until } from "../support/processes/stack.ts";

const world = installation({
  app: "held",
  workers: 0,
  env: {
    WORKER_DRAIN_TIMEOUT: "5s",
    // What was sent to a worker that has gone is swept up soon.
    WATCHER_DEAD_AFTER: "2s",
    WATCHER_SWEEP_EVERY: "1s",
  },
  leases: true,
});
const { journal, start, result } = world;

it("reclaim goes on elsewhere at once, fail is told `drained`, running calls are finished first", async () => {
  const first = await world.stack.run("worker");
  const policies = ["reclaim", "fail"];
  const input = { calls: 3, ms: 1000, waits: true };
  for (const onLost of policies) {
    await start("working", { ...input, onLost }, onLost);
    await journal.until(`count ${onLost}`);
  }
  await world.stack.run("worker");
  for (const id of policies) {
    await world.client.signal(id, "go");
    await journal.until(`count ${id}`, 2);
  }
  await first.stop();
  expect(await first.exited).toBe(0);

  const reclaimed = await result<{ seen: unknown[] }>("reclaim");
  // The call under way was finished on the first worker; the next one counts from the beginning on the second.
  expect(reclaimed.seen).toEqual([1, 2, 1]);
  const failed = await result<{ seen: { code: string; reason: string }[] }>("fail");
  expect(failed.seen).toEqual([1, 2, expect.objectContaining({ code: "session_lost", reason: "drained" })]);
  // Given back, not waited for: no expiry anywhere.
  expect(world.leases.holdings.map((holding) => holding.end?.kind)).not.toContain("expired");
  expect(journal.lines("aborted")).toEqual([]);
});

it("a drain asked over the bus does the same, and the process ends", async () => {
  const { client } = world;
  const before = world.stack.of("worker").filter((worker) => !worker.gone);
  await start("working", { calls: 3, ms: 500, onLost: "reclaim", waits: true }, "asked");
  const [line = ""] = await journal.until("count asked");
  const [, , workerId = ""] = line.split(" ");
  await world.stack.run("worker");
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
  await world.streams.untilQuiet();
});
