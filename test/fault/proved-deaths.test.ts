/**
 * D1: a worker's death that its supervisor or its process host saw is reported at once, though its leases would
 * last for minutes. One that is paused is not dead, and is judged by its lease.
 */
import { expect, it } from "vitest";
import type { SessionInfo } from "../../shared/sdk/index.ts";
import { installation } from "../support/processes/installation.ts";
import { until } from "../support/processes/stack.ts";

const long = { WORKER_LEASE_TTL: "10m" };
const supervised = { WORKER_SUPERVISED: "true" };

const world = installation({
  ...{ app: "proved-deaths", workers: 0, leases: true, roles: true, killWorkersAfterEach: true },
});
const { journal, start } = world;

interface Held {
  first: SessionInfo;
  outcome: string;
}

/** The process ids of the worker and of the code that waits in the session's call. */
async function waiting(id: string): Promise<{ worker: number; code: number }> {
  const [line = ""] = await journal.until(`waits ${id}`);
  const [, , workerId, code] = line.split(" ");
  const info = await until("the worker is registered", async () =>
    (await world.client.workers.list()).find((one) => one.workerId === workerId),
  );
  return { worker: info.pid, code: Number(code) };
}

const isGone = (pid: number) => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

it("a supervised worker is killed: its session is lost at once, and its supervisor ends as it did", async () => {
  const supervisor = await world.stack.run("worker", { ...long, ...supervised });
  await start("held", {}, "killed");
  const { worker } = await waiting("killed");
  expect(worker).not.toBe(supervisor.pid);
  process.kill(worker, "SIGKILL");
  const { first, outcome } = await world.client.result<Held>("killed", { timeout: "40s" });
  expect(outcome).toBe("crashed");
  expect(await supervisor.exited).toBe(137);
  expect(supervisor.log()).toMatch(/was ended by SIGKILL; 1 sessions were lost/);
  const [tenure] = world.leases.of(first.id);
  expect(tenure).toMatchObject({ holder: first.workerId, end: { kind: "released" } });
  await world.check("killed");
});

it("another session of the instance goes to a worker that lives", async () => {
  await world.stack.run("worker", { ...long, ...supervised });
  await start("moved", undefined, "moved");
  const { worker } = await waiting("moved");
  await world.stack.run("worker", long);
  process.kill(worker, "SIGKILL");
  const { before, after, answer } = await world.result<Record<string, string>>("moved");
  expect(answer).toBe("hello");
  expect(after).not.toBe(before);
});

it.each([
  ["waits", false],
  ["blocks its event loop", true],
])("a process host whose code %s reports the death of its worker, and ends", async (_what, blocking) => {
  const worker = await world.stack.run("worker", long);
  const id = `host-${blocking}`;
  await start("held", { hosted: true, blocking }, id);
  const { code } = await waiting(id);
  expect(code).not.toBe(worker.pid);
  worker.kill("SIGKILL");
  const { outcome } = await world.result<Held>(id);
  expect(outcome).toBe("crashed");
  await until("the host is gone", () => isGone(code));
});

it("a supervised worker that is paused keeps its session until the lease is over", async () => {
  const supervisor = await world.stack.run("worker", { WORKER_LEASE_TTL: "2s", ...supervised });
  await start("held", {}, "paused");
  const { worker } = await waiting("paused");
  process.kill(worker, "SIGSTOP");
  const { first, outcome } = await world.client.result<Held>("paused", { timeout: "40s" });
  expect(outcome).toBe("expired");
  expect(world.leases.of(first.id)[0]).toMatchObject({ end: { kind: "expired" } });
  expect(supervisor.gone).toBe(false);
  process.kill(worker, "SIGKILL");
  expect(await supervisor.exited).toBe(137);
  await world.check("paused");
});

it("SIGTERM to the supervisor drains its worker, and both end well", async () => {
  const supervisor = await world.stack.run("worker", { ...long, ...supervised, WORKER_DRAIN_TIMEOUT: "0ms" });
  await start("held", {}, "drained");
  const { worker } = await waiting("drained");
  await supervisor.stop();
  expect(await supervisor.exited).toBe(0);
  expect(isGone(worker)).toBe(true);
  const { outcome } = await world.result<Held>("drained");
  expect(outcome).toBe("drained");
});
