import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import {
  forkWorker,
  startWorkerProcess,
  type WorkerProcess,
} from "../../support/processes/worker-process.ts";
import { ActivityRig } from "../../support/worlds/activity-rig.ts";

const app = fileURLToPath(new URL("../../support/apps/worker-app.ts", import.meta.url));
const running = new Set<WorkerProcess>();
let rig: ActivityRig;

beforeAll(async () => {
  rig = await ActivityRig.start();
});
afterAll(() => rig.stop());
afterEach(async () => {
  for (const child of running) child.kill("SIGKILL");
  await Promise.all([...running].map((child) => child.exited));
  running.clear();
});

async function start(env: Record<string, string> = {}): Promise<WorkerProcess> {
  const child = await startWorkerProcess(rig.nats.url, app, { WORKER_ACK_WAIT: "1s", ...env });
  running.add(child);
  return child;
}

it("a task of a worker killed half way is run by another, with what the first said last", async () => {
  const first = await start();
  await rig.publishTask({ instanceId: "i-killed", name: "survivor", reportStart: true });
  await rig.report("i-killed", (report) => report.result.kind === "started");
  await rig.poll("the heartbeat", async () => {
    const last = await rig.bus.last("KV_heartbeats", "$KV.heartbeats.i-killed.1.1", { leader: true });
    return last !== undefined;
  });
  first.kill("SIGKILL");
  await first.exited;
  const second = await start();
  const report = await rig.report("i-killed");
  expect(report.result).toEqual({
    kind: "completed",
    output: { json: { before: { pid: first.pid }, pid: second.pid } },
  });
  await rig.untilQueueIsEmpty();
});

it("SIGTERM lets a task finish and the process end in order", async () => {
  const child = await start();
  await rig.publishTask({ instanceId: "i-term", name: "takes", input: 700, reportStart: true });
  await rig.report("i-term", (report) => report.result.kind === "started");
  child.kill("SIGTERM");
  expect((await rig.report("i-term")).result).toMatchObject({ kind: "completed" });
  expect(await child.exited).toBe(0);
  await rig.untilQueueIsEmpty();
});

it("a second signal ends it at once, and nothing is lost", async () => {
  const child = await start();
  await rig.publishTask({ instanceId: "i-forced", name: "takes", input: 1500, reportStart: true });
  await rig.report("i-forced", (report) => report.result.kind === "started");
  child.kill("SIGTERM");
  await rig.poll("the first signal to be heard", async () => child.stderr().includes("stopping"));
  child.kill("SIGTERM");
  expect(await child.exited).not.toBe(0);
  await start();
  expect((await rig.report("i-forced")).result).toMatchObject({ kind: "completed" });
});

it("a drain asked over the bus ends the process", async () => {
  const child = await start({ WORKER_NODE_ID: "drained-node" });
  const workers = await rig.bus.read("KV_workers", "$KV.workers.>");
  const subject = workers?.map((w) => w.subject).find((s) => s.includes("drained-node")) ?? "";
  const control = rig.names.workerControl(subject.split(".").at(-1) ?? "");
  await rig.bus.request(control, new TextEncoder().encode('{"kind":"drain"}'), { timeoutMs: 5000 });
  expect(await child.exited).toBe(0);
});

it("lives on when user code forgets a promise that fails, or throws in a timer", async () => {
  const child = await start();
  await rig.publishTask({ instanceId: "i-careless", name: "careless" });
  await rig.report("i-careless");
  for (const code of ["unhandled_rejection", "uncaught_exception"]) {
    await rig.poll(`${code} to be said`, async () => child.stderr().includes(code));
  }
  await rig.publishTask({ instanceId: "i-echo", name: "echo", input: "still here" });
  expect((await rig.report("i-echo")).result).toMatchObject({ output: { json: "still here" } });
});

it("a task that kills its workers is poisoned after the last of its deliveries", async () => {
  const env = { WORKER_MAX_DELIVERIES: "2" };
  await rig.publishTask({ instanceId: "i-deadly", name: "deadly" });
  for (let death = 1; death <= 2; death++) {
    const victim = forkWorker({ NATS_URL: rig.nats.url, HOLDFAST_APP: app, WORKER_ACK_WAIT: "1s", ...env });
    running.add(victim);
    expect(await victim.exited).toBe("SIGKILL");
  }
  await start(env);
  const report = await rig.report("i-deadly");
  expect(report.result).toMatchObject({ kind: "failed", error: { code: "poisoned", retryable: false } });
});

it("refuses settings it does not know or that contradict each other, in one line and perhaps a remedy", async () => {
  const wrong: Record<string, string>[] = [
    { WORKER_SLOTS: "4" },
    { WORKER_MAX_SESSIONS: "0", WORKER_SESSION_TYPES: "x" },
    { WORKER_DRAIN_TIMEOUT: "2h" },
    { WORKER_ACTIVITIES: "no-such-activity" },
  ];
  const refusals = await Promise.all(
    wrong.map(async (env) => {
      const child = forkWorker({ NATS_URL: rig.nats.url, HOLDFAST_APP: app, LOG_LEVEL: "silent", ...env });
      running.add(child);
      const code = await child.exited;
      const [line, ...remedy] = child.stderr().trim().split("\n");
      expect(remedy.every((more) => more.startsWith("  "))).toBe(true);
      return [code, line];
    }),
  );
  expect(refusals).toEqual([
    [2, expect.stringContaining("unknown setting WORKER_SLOTS")],
    [
      2,
      expect.stringContaining(
        "WORKER_MAX_SESSIONS and WORKER_SESSION_TYPES contradict: no room for the types named",
      ),
    ],
    [
      2,
      expect.stringContaining('WORKER_DRAIN_TIMEOUT="2h" must be a duration like 30s, from 0 to 3600000 ms'),
    ],
    [
      2,
      expect.stringContaining(
        "WORKER_ACTIVITIES names no-such-activity, which the application does not have",
      ),
    ],
  ]);
});
