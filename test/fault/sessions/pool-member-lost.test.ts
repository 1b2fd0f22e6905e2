/** Members of a pool die, sleep or are sent away: what they had is done by the others. */
import { expect, it } from "vitest";
import type { Answer } from "../../apps/pooled.ts";
import { installation } from "../../support/processes/installation.ts";
import { type ServiceProcess, until } from "../../support/processes/stack.ts";

const world = installation({
  ...{ app: "pooled", workers: 0, env: { WORKER_LEASE_TTL: "2s", WORKER_ACK_WAIT: "1s" } },
  ...{ leases: true, killWorkersAfterEach: true },
});
const { journal, start, result } = world;

const calls = 12;
const tagOf = (line: string) => line.split(" ")[2] ?? "";
const workerOf = (line: string) => line.split(" ")[4] ?? "";

/** Two members on two workers, all calls asked; returns the worker that runs one of the first. */
async function busy(name: string): Promise<ServiceProcess> {
  const workers = await Promise.all([world.stack.run("worker"), world.stack.run("worker")]);
  const pool = { name, min: 2, max: 2 };
  await start("asking", { pool, calls, ms: 300, stay: true }, name);
  await journal.until(`init ${name} `, 2);
  await world.client.signal(name, "ask");
  const asked = await journal.until(`ask ${name} `, 2);
  expect(new Set(asked.slice(0, 2).map(workerOf)).size, "one call on each").toBe(2);
  const listed = (await world.client.workers.list()).find(
    ({ workerId }) => workerId === workerOf(asked[0] ?? ""),
  );
  const victim = workers.find(({ pid }) => pid === listed?.pid);
  if (!victim) throw new Error("nobody has the first call");
  return victim;
}

/** Every call answered once, as the history tells it. */
async function answered(name: string): Promise<Answer[]> {
  await world.client.signal(name, "go");
  const answers = await result<Answer[]>(name);
  const completed = (await world.streams.kinds(name)).filter((kind) => kind === "activity.completed");
  expect(completed).toHaveLength(calls);
  const tags = new Set(journal.lines(`ask ${name} `).map(tagOf));
  expect(tags.size).toBe(calls);
  await world.streams.untilQuiet();
  return answers;
}

it("a worker is killed: its calls are done by the others, and it is replaced", async () => {
  const victim = await busy("killed");
  victim.kill("SIGKILL");
  await answered("killed");
  // A redelivery is no attempt: no code failed.
  expect(await world.streams.kinds("killed")).not.toContain("activity.attempt_failed");
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
  await world.streams.checkEnded(["asleep"]);
});
