/** Members of a pool die, sleep or are sent away: what they had is done by the others. */
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { Answer } from "../apps/pooled.ts";
import { Journal } from "../support/journal.ts";
import { LeaseLog } from "../support/lease-log.ts";
import { type ServiceProcess, Stack, until } from "../support/stack.ts";
import { Streams } from "../support/streams.ts";

const app = fileURLToPath(new URL("../apps/pooled.ts", import.meta.url));
const journal = new Journal();
let stack: Stack;
let streams: Streams;
let leases: LeaseLog;
beforeAll(async () => {
  const env = { ...journal.env, WORKER_LEASE_TTL: "2s", WORKER_ACK_WAIT: "1s" };
  stack = await Stack.start({ app, workers: 0, env });
  streams = new Streams(stack);
  leases = await LeaseLog.start(stack);
});
afterEach(async () => {
  leases.checkOwners();
  for (const worker of stack.of("worker")) {
    worker.resume();
    worker.kill("SIGKILL");
    await worker.exited;
  }
});
afterAll(async () => {
  await leases?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
  journal[Symbol.dispose]();
});

const calls = 12;
const tagOf = (line: string) => line.split(" ")[2] ?? "";
const workerOf = (line: string) => line.split(" ")[4] ?? "";

/** Two members on two workers, all calls asked; returns the worker that runs one of the first. */
async function busy(name: string): Promise<ServiceProcess> {
  const workers = await Promise.all([stack.run("worker"), stack.run("worker")]);
  const pool = { name, min: 2, max: 2 };
  await stack.client.start("asking", { pool, calls, ms: 300, stay: true }, { id: name });
  await journal.until(`init ${name} `, 2);
  await stack.client.signal(name, "ask");
  const asked = await journal.until(`ask ${name} `, 2);
  expect(new Set(asked.slice(0, 2).map(workerOf)).size, "one call on each").toBe(2);
  const listed = (await stack.client.workers.list()).find(
    ({ workerId }) => workerId === workerOf(asked[0] ?? ""),
  );
  const victim = workers.find(({ pid }) => pid === listed?.pid);
  if (!victim) throw new Error("nobody has the first call");
  return victim;
}

/** Every call answered once, as the history tells it. */
async function answered(name: string): Promise<Answer[]> {
  await stack.client.signal(name, "go");
  const answers = await stack.client.result<Answer[]>(name, { timeout: "40s" });
  await streams.checkEnded([name]);
  const completed = (await streams.kinds(name)).filter((kind) => kind === "activity.completed");
  expect(completed).toHaveLength(calls);
  const tags = new Set(journal.lines(`ask ${name} `).map(tagOf));
  expect(tags.size).toBe(calls);
  await streams.untilQuiet();
  return answers;
}

it("a worker is killed: its calls are done by the others, and it is replaced", async () => {
  const victim = await busy("killed");
  victim.kill("SIGKILL");
  await answered("killed");
  // A redelivery is no attempt: nobody failed.
  expect(await streams.kinds("killed")).not.toContain("activity.attempt_failed");
});

it("a worker is drained: what runs finishes there, nothing runs twice", async () => {
  const victim = await busy("drained");
  await victim.stop();
  await answered("drained");
  expect(journal.lines("ask drained ")).toHaveLength(calls);
});

it("a worker sleeps: its calls go on elsewhere, and what it says when it wakes changes nothing", async () => {
  const victim = await busy("asleep");
  victim.pause();
  const answers = await answered("asleep");
  expect(answers).toHaveLength(calls);
  victim.resume();
  await until("it knows that its lease is over", () => /"kind":"session.detached"/.test(victim.log()));
  await streams.checkEnded(["asleep"]);
});
