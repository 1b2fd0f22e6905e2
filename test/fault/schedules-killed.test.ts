/** Times of a schedule are counted while every process, and NATS itself, is killed. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runId } from "../../shared/schedules/index.ts";
import { Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../examples/schedule/app.ts", import.meta.url));

test("no time is missed or doubled: orchestrators, worker, watcher and nats-server are killed", async () => {
  const env = { HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000" };
  await using stack = await Stack.start({ app, orchestrators: 2, env });
  const { schedules } = stack.client;
  const spec = { orchestration: "daily-report", input: { shop: "corner" }, every: "500ms" } as const;
  const before = Date.now();
  await schedules.create("often", { ...spec, overlap: "buffer-all" } as never);
  const after = Date.now();
  const runs = async () => (await stack.client.list({ name: "daily-report", limit: 10_000 })).length;
  const killed = async (service: "orchestrator" | "worker" | "watcher") => {
    const [victim] = stack.of(service);
    victim?.kill("SIGKILL");
    await victim?.exited;
    await stack.run(service);
  };
  await until("the first runs", async () => (await runs()) >= 4);
  await killed("orchestrator");
  await killed("worker");
  await killed("watcher");
  await until("runs after the kills", async () => (await runs()) >= 10);
  await stack.nats.kill();
  await stack.nats.restart();
  await until("runs after the server died", async () => (await runs().catch(() => 0)) >= 16);
  await Promise.all(
    stack.of("orchestrator").map((one) => {
      one.kill("SIGKILL");
      return one.exited;
    }),
  );
  await stack.run("orchestrator");
  const seen = await runs();
  await until("runs after both orchestrators died", async () => (await runs()) >= seen + 6);
  await schedules.delete("often");
  await stack.client.result("schedule-often", { timeout: "30s" });
  const ids = (await stack.client.list({ name: "daily-report", limit: 10_000 })).map((one) => one.instanceId);
  const last = Math.max(...(await schedules.describe("often")).recent.map(({ at }) => at));
  // The times from the first to the last, each once: the first is the next after the schedule was made.
  const first = [before, after].map((at) => (Math.floor(at / 500) + 1) * 500);
  const times = (from: number) => {
    const expected: string[] = [];
    for (let time = from; time <= last; time += 500) expected.push(runId("often", time));
    return expected.sort();
  };
  expect([times(first[0] ?? 0), times(first[1] ?? 0)]).toContainEqual(ids.sort());
  for (const instanceId of ids)
    expect(await stack.client.result(instanceId, { timeout: "30s" })).toMatch(/^corner/);
}, 120_000);
