/** Sessions and the containers that hold them. */

import { until } from "../../support/processes/stack.ts";
import { check, ensure } from "../check.ts";
import type { HoldStatus } from "../driver.ts";
import { newId, type Stage } from "../stage.ts";

type Seen = HoldStatus["seen"][number];
const counted = (seen: Seen | undefined): number => (seen !== undefined && "count" in seen ? seen.count : 0);
const lostOf = (seen: readonly Seen[]) => seen.flatMap((entry) => ("lost" in entry ? [entry] : []));

let signals = 0;

/** Short, so that a loss is reported soon; shorter than a change of leader in a cluster. */
const shortLeaseMs = 3_000;

export async function hold(stage: Stage, onLost: "fail" | "reclaim", leaseTtl = shortLeaseMs) {
  const { driver } = stage;
  const id = newId("hold");
  await driver.start(id, "hold", { onLost, leaseTtl });
  const { host } = await driver.held(id, "its session is open", () => true);
  const ask = (payload: { ms?: number; done?: boolean }) =>
    driver.signal(id, "add", payload, `add-${++signals}`);
  return {
    id,
    host,
    ask,
    /** One more, and what it answered. */
    async add(ms = 0) {
      const before = (await driver.held(id, "any status", () => true)).seen.length;
      await ask({ ms });
      const { seen } = await driver.held(id, "one more", (status) => status.seen.length > before);
      return seen.at(-1);
    },
    async end(): Promise<void> {
      await ask({ done: true });
      check(`how ${id} ends`, (await driver.result(id)).status, "completed");
    },
  };
}

/** The call that takes so long has begun on that container. */
async function runs({ project }: Stage, host: string, ms: number): Promise<void> {
  const { id } = await project.containerOf(host);
  await until(`a call of ${ms} ms runs on ${host}`, async () =>
    (await project.said(id)).includes(`"adding for ${ms} ms"`),
  );
}

/** The container that holds a session is killed: the orchestration gets the loss and goes on elsewhere. */
export async function killTheHolder(stage: Stage): Promise<void> {
  const { project, driver, journal } = stage;
  const failing = await hold(stage, "fail");
  check("the first count", counted(await failing.add()), 1);
  // Long enough to be running when the container dies.
  await failing.ask({ ms: 60_000 });
  await runs(stage, failing.host, 60_000);
  const killedAt = Date.now();
  await project.docker("kill", (await project.containerOf(failing.host)).id);
  const told = await driver.held(failing.id, "it is told", ({ seen }) => lostOf(seen).length > 0);
  const [lost] = lostOf(told.seen);
  check("what it is told", lost?.lost, "session_lost");
  journal.note("session_lost", `${(lost?.at ?? 0) - killedAt} ms after the kill (lease of 3 s)`);
  const went = await driver.held(failing.id, "it goes on", ({ seen }) => seen.length >= 3);
  check("the count in the new session", counted(went.seen.at(-1)), 1);
  ensure("it goes on elsewhere", went.host !== failing.host, went.host);
  await failing.end();

  const reclaiming = await hold(stage, "reclaim");
  check("counts before", [counted(await reclaiming.add()), counted(await reclaiming.add())], [1, 2]);
  const again = Date.now();
  await project.docker("kill", (await project.containerOf(reclaiming.host)).id);
  const next = await reclaiming.add();
  check("the count after, in a new memory", counted(next), 1);
  journal.note("`onLost: reclaim`: the next call's answer", `${(next?.at ?? 0) - again} ms after the kill`);
  await reclaiming.end();
  await project.up("--no-recreate", "--scale", "worker=4", "worker");
}

/** Runs inside a worker's container: ends the worker as a crash would. */
const crash = `
const fs = require("fs");
for (const pid of fs.readdirSync("/proc").filter((name) => /^\\d+$/.test(name) && name !== "1" && name !== String(process.pid))) {
  const words = fs.readFileSync("/proc/" + pid + "/cmdline", "utf8").split("\\0");
  if (words.includes("worker")) process.kill(Number(pid), "SIGKILL");
}`;

export async function crashAWorker(stage: Stage): Promise<void> {
  const { project, journal } = stage;
  const [worker] = await project.containers("worker");
  const id = worker?.id ?? "";
  const crashedAt = performance.now();
  // The container ends with the worker, and with the process that killed it.
  await project.docker("exec", "--detach", id, "node", "-e", crash);
  await until("it is started again", async () => {
    return (await project.docker("inspect", "--format", "{{.RestartCount}}", id)).trim() === "1";
  });
  journal.note("started again after a crash", `${Math.round(performance.now() - crashedAt)} ms`);
  await project.healthy();
}

/** A worker that is stopped finishes what runs; its session goes on elsewhere. */
export async function stopAWorker(stage: Stage): Promise<void> {
  const { project, driver, journal } = stage;
  const held = await hold(stage, "reclaim");
  check("the first count", counted(await held.add()), 1);
  await held.ask({ ms: 4_000 });
  await runs(stage, held.host, 4_000);
  const { id } = await project.containerOf(held.host);
  const stoppedAt = performance.now();
  await project.docker("stop", "--time", "45", id);
  journal.note("stopped within", `${Math.round(performance.now() - stoppedAt)} ms, a call of 4 s running`);
  check("its exit code", (await project.containerOf(held.host)).exitCode, 0);
  const { seen } = await driver.held(held.id, "the call is answered", (status) => status.seen.length === 2);
  const answer = seen[1];
  check(
    "the running call's answer",
    [counted(answer), answer && "host" in answer && answer.host],
    [2, held.host],
  );
  const after = await held.add();
  ensure(
    "the next call runs elsewhere",
    after !== undefined && "host" in after && after.host !== held.host,
    after,
  );
  await held.end();
  await project.up("--no-recreate", "--scale", "worker=4", "worker");
}
