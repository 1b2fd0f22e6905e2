import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { WorkerInfo } from "../../../schemas/index.ts";
import { Bucket, decode } from "../../../shared/bus/index.ts";
import { defineActivity } from "../../../shared/definitions/index.ts";
import { systemRuntime } from "../../../shared/runtime/index.ts";
import { LiveWorkers } from "../../../shared/sessions/index.ts";
import { ActivityRig } from "../../support/worlds/activity-rig.ts";

let rig: ActivityRig;
beforeAll(async () => {
  rig = await ActivityRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

function gated(name: string) {
  const gates: ((value: string) => void)[] = [];
  const reasons: unknown[] = [];
  const activity = defineActivity(name, {
    run: (ctx) => {
      ctx.signal.addEventListener("abort", () => reasons.push(ctx.signal.reason));
      return new Promise<string>((resolve) => gates.push(resolve));
    },
  });
  return { activity, reasons, open: () => gates.splice(0).map((gate) => gate("finished")) };
}

it("finishes what runs, hands back what waits", async () => {
  const { activity, open } = gated("steady");
  const first = await rig.startWorker({ activity }, { WORKER_ACTIVITY_SLOTS: "1" });
  const spare = defineActivity("spare", { run: () => "spare" });
  await rig.publishTask({ instanceId: "i-runs", name: "steady" });
  await rig.facts.until("the start", () => first.happenings.find((h) => h.kind === "activity.started"));
  const stopping = first.worker.stop();
  await rig.publishTask({ instanceId: "i-waits", name: "steady" });
  const { activity: again, open: openAgain } = gated("steady");
  const second = await rig.startWorker({ again, spare });
  await rig.facts.until("the other", () => second.happenings.find((h) => h.kind === "activity.started"));
  open();
  await stopping;
  expect((await rig.report("i-runs")).workerId).toBe(first.workerId);
  openAgain();
  expect((await rig.report("i-waits")).workerId).toBe(second.workerId);
  await rig.untilQueueIsEmpty();
});

it("hands back at once what was pulled and had not started", async () => {
  const blocker = gated("blocker");
  const waiting = defineActivity("waits-here", { run: () => "ran" });
  const env = { WORKER_ACTIVITY_SLOTS: "1", WORKER_SURPLUS_WAIT: "10s" };
  const first = await rig.startWorker({ blocker: blocker.activity, waiting }, env);
  await rig.publishTask({ instanceId: "i-blocks", name: "blocker" });
  await rig.facts.until("the start", () => first.happenings.find((h) => h.kind === "activity.started"));
  await rig.publishTask({ instanceId: "i-pulled", name: "waits-here" });
  await rig.poll("the task to be handed out", async () => {
    const consumers = await rig.bus.consumers(rig.names.activitiesStream);
    return consumers.some((c) => c.name.endsWith("waits-here") && c.ackPending === 1);
  });
  const stopping = first.worker.stop();
  const second = await rig.startWorker({ waiting });
  expect((await rig.report("i-pulled")).workerId).toBe(second.workerId);
  blocker.open();
  await stopping;
  await rig.untilQueueIsEmpty();
});

it("defect 10: what leaving workers give back is not poison, however often", async () => {
  const env = { WORKER_DRAIN_TIMEOUT: "50ms", WORKER_MAX_DELIVERIES: "2" };
  const stuck = gated("deployed");
  await rig.publishTask({ instanceId: "i-deployed", name: "deployed" });
  for (let deployment = 0; deployment < 5; deployment++) {
    const { worker, happenings } = await rig.startWorker({ stuck: stuck.activity }, env);
    await rig.facts.until("the start", () => happenings.find((h) => h.kind === "activity.started"));
    await worker.stop();
    stuck.open(); // that run is no longer awaited
  }
  const last = await rig.startWorker({ stuck: stuck.activity }, env);
  await rig.facts.until("the start", () => last.happenings.find((h) => h.kind === "activity.started"));
  await rig.poll("the code to wait", async () => stuck.open().length > 0);
  expect((await rig.report("i-deployed")).result).toMatchObject({ kind: "completed" });
  await rig.untilQueueIsEmpty();
});

it("defect 11: a worker with a shorter ack wait does not take what another one runs", async () => {
  const long = gated("rolling");
  const quick = defineActivity("quick", {
    run: () => new Promise<string>((resolve) => setTimeout(() => resolve("over"), 2500)),
  });
  const before = await rig.startWorker({ long: long.activity }, { WORKER_ACK_WAIT: "30s" });
  await rig.publishTask({ instanceId: "i-rolling", name: "rolling" });
  await rig.facts.until("the start", () => before.happenings.find((h) => h.kind === "activity.started"));
  const after = await rig.startWorker({ long: gated("rolling").activity, quick }, { WORKER_ACK_WAIT: "1s" });
  // Longer than the shorter wait: what would be taken has been taken.
  await rig.publishTask({ instanceId: "i-quick", name: "quick" });
  await rig.report("i-quick");
  expect(after.happenings.filter((h) => h.kind === "activity.started" && h.name === "rolling")).toEqual([]);
  long.open();
  expect((await rig.report("i-rolling")).workerId).toBe(before.workerId);
  await rig.untilQueueIsEmpty();
});

it("aborts what does not finish in time; another worker runs it again", async () => {
  const stuck = gated("stuck");
  const first = await rig.startWorker({ stuck: stuck.activity }, { WORKER_DRAIN_TIMEOUT: "50ms" });
  await rig.publishTask({ instanceId: "i-stuck", name: "stuck" });
  await rig.facts.until("the start", () => first.happenings.find((h) => h.kind === "activity.started"));
  await first.worker.stop();
  expect(stuck.reasons).toMatchObject([{ code: "worker_shutdown" }]);
  const quick = defineActivity("stuck", { run: () => "quick" });
  const second = await rig.startWorker({ quick });
  const report = await rig.report("i-stuck");
  expect(report).toMatchObject({ workerId: second.workerId, result: { kind: "completed" } });
  stuck.open();
  await rig.untilQueueIsEmpty();
  expect(rig.reports.filter((r) => r.instanceId === "i-stuck")).toHaveLength(1);
});

it("is registered while it lives, with its load, and drains when asked over the bus", async () => {
  const held = gated("held");
  const bucket = new Bucket(rig.bus, rig.names.bucket("workers"));
  const view = new LiveWorkers({ bus: rig.bus, names: rig.names, runtime: systemRuntime() });
  await view.start();
  const env = {
    WORKER_NODE_ID: "node-7",
    WORKER_TAGS: "gpu,fast",
    WORKER_RESOURCES: "vram=24",
    WORKER_ACTIVITY_SLOTS: "3",
  };
  const { workerId, worker, happenings } = await rig.startWorker({ held: held.activity }, env);
  const read = async () => {
    const entry = await bucket.get(workerId, { leader: true });
    const info = entry && decode(WorkerInfo, entry.value);
    return info?.kind === "ok" ? info.value : undefined;
  };
  expect(workerId).toMatch(/^node-7-/);
  expect(await read()).toMatchObject({
    nodeId: "node-7",
    tags: ["gpu", "fast"],
    resources: { total: { vram: 24 }, used: {} },
    activities: [{ queue: "default", name: "held" }],
    draining: false,
    slots: { activities: { used: 0, max: 3 } },
  });
  await rig.publishTask({ instanceId: "i-load", name: "held" });
  await rig.poll("the load", async () => (await read())?.slots.activities.used === 1);
  await rig.poll("the view", async () => view.workers().some((w) => w.slots.activities.used === 1));

  const control = rig.names.workerControl(workerId);
  const bad = await rig.bus.request(control, json({ kind: "dance" }), { timeoutMs: 5000 });
  expect(bad.kind === "reply" && JSON.parse(new TextDecoder().decode(bad.body))).toMatchObject({ ok: false });
  const good = await rig.bus.request(control, json({ kind: "drain" }), { timeoutMs: 5000 });
  expect(good.kind === "reply" && JSON.parse(new TextDecoder().decode(good.body))).toEqual({
    ok: true,
    workerId,
  });
  await rig.poll("the draining flag", async () => (await read())?.draining === true);
  expect(happenings.map((h) => h.kind)).toContain("worker.draining");
  held.open();
  await worker.stop();
  expect(await read()).toBeUndefined();
  await rig.poll("the view to forget", async () => view.workers().length === 0);
  await view.stop();
});
