/**
 * Members, and the orchestrator of the pool's keeper, die while members are lent: no borrower waits for ever
 * or shares a member.
 */
import { expect, it } from "vitest";
import { poolInstance } from "../../../schemas/index.ts";
import { historyViolations } from "../../../shared/verify/index.ts";
import type { Sat } from "../../apps/lent.ts";
import { installation } from "../../support/processes/installation.ts";
import type { ServiceProcess } from "../../support/processes/stack.ts";
import { checkTurns } from "../../support/worlds/seats.ts";

const world = installation({
  app: "lent",
  workers: 0,
  env: {
    ...{ WORKER_LEASE_TTL: "2s", HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000" },
    // Calls that crossed with a drain were sent to a worker that has gone: they are swept up soon.
    ...{ WATCHER_DEAD_AFTER: "2s", WATCHER_SWEEP_EVERY: "1s" },
  },
  leases: true,
  killWorkersAfterEach: true,
});
const { journal, start } = world;

const waiters = ["c", "d"];

/** Two members on two workers, lent to a and b; c and d wait. Returns the worker of a. */
async function lent(name: string): Promise<ServiceProcess> {
  const workers = await Promise.all([world.stack.run("worker"), world.stack.run("worker")]);
  const pool = { name, min: 2, max: 2 };
  for (const who of ["a", "b"]) {
    await start("sitting", { pool, times: 3, ms: 400, stay: true }, `${name}-${who}`);
    await journal.until(`sit ${name} ${name}-${who} `);
  }
  for (const who of waiters) await start("sitting", { pool, times: 2 }, `${name}-${who}`);
  const holder = journal.lines(`sit ${name} ${name}-a `)[0]?.split(" ")[4];
  const listed = (await world.client.workers.list()).find(({ workerId }) => workerId === holder);
  const found = workers.find(({ pid }) => pid === listed?.pid);
  if (!found) throw new Error("nobody has the first seat");
  return found;
}

async function settled(name: string): Promise<Record<"a" | "b" | "c" | "d", Sat[]>> {
  await world.client.signal(`${name}-a`, "go");
  await world.client.signal(`${name}-b`, "go");
  const of = (who: string) => world.client.result<Sat[]>(`${name}-${who}`, { timeout: "50s" });
  const [a, b, c, d] = await Promise.all([of("a"), of("b"), of("c"), of("d")]);
  const ids = ["a", "b", ...waiters].map((who) => `${name}-${who}`);
  await world.streams.checkEnded(ids);
  const joined = (await world.streams.events(`${name}-a`)).find((event) => event.kind === "pool.joined");
  expect(historyViolations(await world.streams.history(poolInstance(joined?.poolId ?? "")))).toEqual([]);
  checkTurns(journal, name);
  await journal.until(`shutdown ${name} `);
  await world.streams.untilQuiet();
  return { a, b, c, d };
}

it("the worker of a lent member is killed: claimed anew for its borrower, the others notice nothing", async () => {
  (await lent("killed")).kill("SIGKILL");
  const { a, b } = await settled("killed");
  expect(a.map(({ member }) => member)).toEqual(Array(4).fill(a[0]?.member));
  const before = Number(journal.lines("sit killed killed-a ")[0]?.split(" ")[5]);
  expect(a.at(-1)?.epoch).toBeGreaterThan(before);
  expect(new Set(b.map(({ epoch }) => epoch)).size).toBe(1);
  expect(await world.streams.kinds("killed-a")).toContain("session.lost");
  expect(await world.streams.kinds("killed-b")).not.toContain("session.lost");
});

it("the only orchestrator is killed while members are lent and others wait", async () => {
  await lent("headless");
  const orchestrator = world.stack.of("orchestrator").find(({ gone }) => !gone);
  orchestrator?.kill("SIGKILL");
  await orchestrator?.exited;
  await world.stack.run("orchestrator");
  const { a, b, c, d } = await settled("headless");
  for (const sat of [a, b, c, d]) expect(new Set(sat.map(({ epoch }) => epoch)).size).toBe(1);
  expect(journal.lines("init headless ")).toHaveLength(2);
});

it("both are killed at once", async () => {
  const worker = await lent("both");
  const orchestrator = world.stack.of("orchestrator").find(({ gone }) => !gone);
  worker.kill("SIGKILL");
  orchestrator?.kill("SIGKILL");
  await orchestrator?.exited;
  await world.stack.run("orchestrator");
  const { a } = await settled("both");
  expect(a.map(({ member }) => member)).toEqual(Array(4).fill(a[0]?.member));
});

it("the worker of a lent member is drained: its calls are not repeated", async () => {
  const victim = await lent("drained");
  await victim.stop();
  await settled("drained");
  expect(await world.streams.kinds("drained-a")).toContain("session.lost");
  expect(journal.lines("sit drained drained-a ")).toHaveLength(4);
});

it("what a borrower left running and nothing stops does not keep the next one waiting", async () => {
  await world.stack.run("worker");
  const pool = { name: "sulky", max: 1 };
  await start("sulking", pool, "sulky-a");
  await journal.until("sulk sulky ");
  await start("sitting", { pool }, "sulky-b");
  await world.client.terminate("sulky-a");
  const sat = await world.client.result<Sat[]>("sulky-b", { timeout: "40s" });
  expect(sat).toMatchObject([{ before: [] }]);
  expect(journal.lines("init sulky ")).toHaveLength(2);
});
