/**
 * D1 with real processes: what is killed is followed at once, what is only paused keeps its work. All waiting times
 * that could have done it instead are longer than the tests may take.
 */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Streams } from "../support/nats/streams.ts";
import { Journal } from "../support/processes/journal.ts";
import { type ServiceProcess, Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/durable.ts", import.meta.url));
const never = { WORKER_ACK_WAIT: "10m", HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "600000" };

/** The worker that runs it has noted its process. */
async function runner(stack: Stack, journal: Journal, count = 1): Promise<ServiceProcess> {
  const line = (await journal.until("lives", count))[count - 1] ?? "";
  const found = stack.of("worker").find((worker) => line === `lives ${worker.pid}`);
  if (!found) throw new Error(`nobody is the worker of "${line}"`);
  return found;
}

describe.each([
  ["by the lane", "true"],
  ["by the queue", "false"],
])("%s", (_way, lane) => {
  test("two workers are killed one after the other while they run a task; the third ends it", async () => {
    using journal = new Journal();
    const env = { ...journal.env, ...never, HOLDFAST_ORCHESTRATOR_LANE: lane };
    await using stack = await Stack.start({ app, workers: 3, watchers: 0, env });
    const handle = await stack.client.start("outlives", { deaths: 2 });
    for (const death of [1, 2]) (await runner(stack, journal, death)).kill("SIGKILL");
    expect(await handle.result({ timeout: "50s" })).toBe(3);
    expect(new Set(journal.lines("lives")).size).toBe(3);
    const streams = new Streams(stack);
    await streams.checkEnded([handle.instanceId]);
    await streams.untilQuiet();
  });

  test("a worker is paused while it runs a task: nobody else runs it", async () => {
    using journal = new Journal();
    const env = { ...journal.env, ...never, HOLDFAST_ORCHESTRATOR_LANE: lane };
    await using stack = await Stack.start({ app, workers: 3, watchers: 0, env });
    const paused = await stack.client.start("outlives", { deaths: 1 });
    const sleeper = await runner(stack, journal);
    sleeper.pause();
    // Another death is proved meanwhile: the watching goes on, and tells the two apart.
    const [victim, other] = stack.of("worker").filter((worker) => worker !== sleeper);
    victim?.kill("SIGKILL");
    const [orchestrator] = stack.of("orchestrator");
    await until("the proof of that death", () => orchestrator?.log().includes("worker.died") ?? false);
    expect(journal.lines("lives")).toHaveLength(1);
    expect(other?.gone).toBe(false);
    // Now it dies, and only now its task goes on.
    sleeper.kill("SIGKILL");
    expect(await paused.result({ timeout: "50s" })).toBe(2);
    expect(journal.lines("lives")).toHaveLength(2);
  });
});

test("an orchestrator is killed while another one is alive: its instances go on before any lease is over", async () => {
  using journal = new Journal();
  await using stack = await Stack.start({
    app,
    orchestrators: 2,
    watchers: 0,
    env: { ...journal.env, ...never },
  });
  const ids = Array.from({ length: 40 }, (_, i) => `o${i}`);
  const handles = await Promise.all(ids.map((id) => stack.client.start("steps", { n: 10, ms: 20 }, { id })));
  await journal.until("add", 60);
  stack.of("orchestrator")[0]?.kill("SIGKILL");
  expect(await Promise.all(handles.map((handle) => handle.result({ timeout: "50s" })))).toEqual(
    ids.map(() => 10),
  );
  const streams = new Streams(stack);
  await streams.checkEnded(ids);
});
