/** Members die while they are lent, and so do those who look after the pool: nobody waits for ever, nobody shares. */
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { poolInstance } from "../../schemas/index.ts";
import type { Sat } from "../apps/lent.ts";
import { Journal } from "../support/journal.ts";
import { checkSessionEvents, LeaseLog } from "../support/lease-log.ts";
import { checkTurns } from "../support/seats.ts";
import { type ServiceProcess, Stack } from "../support/stack.ts";
import { Streams } from "../support/streams.ts";

const app = fileURLToPath(new URL("../apps/lent.ts", import.meta.url));
const journal = new Journal();
let stack: Stack;
let streams: Streams;
let leases: LeaseLog;
beforeAll(async () => {
  const env = {
    ...journal.env,
    ...{ WORKER_LEASE_TTL: "2s", HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000" },
    // Calls that crossed with a drain were sent to a worker that has gone: they are swept up soon.
    ...{ WATCHER_DEAD_AFTER: "2s", WATCHER_SWEEP_EVERY: "1s" },
  };
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

const waiters = ["c", "d"];

/** Two members on two workers, lent to a and b; c and d wait. Returns the worker of a. */
async function lent(name: string): Promise<ServiceProcess> {
  const workers = await Promise.all([stack.run("worker"), stack.run("worker")]);
  const pool = { name, min: 2, max: 2 };
  for (const who of ["a", "b"]) {
    await stack.client.start("sitting", { pool, times: 3, ms: 400, stay: true }, { id: `${name}-${who}` });
    await journal.until(`sit ${name} ${name}-${who} `);
  }
  for (const who of waiters)
    await stack.client.start("sitting", { pool, times: 2 }, { id: `${name}-${who}` });
  const holder = journal.lines(`sit ${name} ${name}-a `)[0]?.split(" ")[4];
  const listed = (await stack.client.workers.list()).find(({ workerId }) => workerId === holder);
  const found = workers.find(({ pid }) => pid === listed?.pid);
  if (!found) throw new Error("nobody has the first seat");
  return found;
}

async function settled(name: string): Promise<Record<"a" | "b" | "c" | "d", Sat[]>> {
  await stack.client.signal(`${name}-a`, "go");
  await stack.client.signal(`${name}-b`, "go");
  const of = (who: string) => stack.client.result<Sat[]>(`${name}-${who}`, { timeout: "50s" });
  const [a, b, c, d] = await Promise.all([of("a"), of("b"), of("c"), of("d")]);
  const ids = ["a", "b", ...waiters].map((who) => `${name}-${who}`);
  await streams.checkEnded(ids);
  const joined = (await streams.events(`${name}-a`)).find((event) => event.kind === "pool.joined");
  checkSessionEvents(await streams.history(poolInstance(joined?.poolId ?? "")));
  checkTurns(journal, name);
  await journal.until(`shutdown ${name} `);
  await streams.untilQuiet();
  return { a, b, c, d };
}

it("the worker of a lent member is killed: claimed anew for its borrower, the others notice nothing", async () => {
  (await lent("killed")).kill("SIGKILL");
  const { a, b } = await settled("killed");
  expect(a.map(({ member }) => member)).toEqual(Array(4).fill(a[0]?.member));
  const before = Number(journal.lines("sit killed killed-a ")[0]?.split(" ")[5]);
  expect(a.at(-1)?.epoch).toBeGreaterThan(before);
  expect(new Set(b.map(({ epoch }) => epoch)).size).toBe(1);
  expect(await streams.kinds("killed-a")).toContain("session.lost");
  expect(await streams.kinds("killed-b")).not.toContain("session.lost");
});

it("the only orchestrator is killed while members are lent and others wait", async () => {
  await lent("headless");
  const orchestrator = stack.of("orchestrator").find(({ gone }) => !gone);
  orchestrator?.kill("SIGKILL");
  await orchestrator?.exited;
  await stack.run("orchestrator");
  const { a, b, c, d } = await settled("headless");
  for (const sat of [a, b, c, d]) expect(new Set(sat.map(({ epoch }) => epoch)).size).toBe(1);
  expect(journal.lines("init headless ")).toHaveLength(2);
});

it("both are killed at once", async () => {
  const worker = await lent("both");
  const orchestrator = stack.of("orchestrator").find(({ gone }) => !gone);
  worker.kill("SIGKILL");
  orchestrator?.kill("SIGKILL");
  await orchestrator?.exited;
  await stack.run("orchestrator");
  const { a } = await settled("both");
  expect(a.map(({ member }) => member)).toEqual(Array(4).fill(a[0]?.member));
});

it("the worker of a lent member is drained: its calls are not repeated", async () => {
  const victim = await lent("drained");
  await victim.stop();
  await settled("drained");
  expect(await streams.kinds("drained-a")).toContain("session.lost");
  expect(journal.lines("sit drained drained-a ")).toHaveLength(4);
});

it("what a borrower left running and nothing stops does not keep the next one waiting", async () => {
  await stack.run("worker");
  const pool = { name: "sulky", max: 1 };
  await stack.client.start("sulking", pool, { id: "sulky-a" });
  await journal.until("sulk sulky ");
  await stack.client.start("sitting", { pool }, { id: "sulky-b" });
  await stack.client.terminate("sulky-a");
  const sat = await stack.client.result<Sat[]>("sulky-b", { timeout: "40s" });
  expect(sat).toMatchObject([{ before: [] }]);
  expect(journal.lines("init sulky ")).toHaveLength(2);
});
