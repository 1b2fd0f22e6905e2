import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { defineActivity } from "../../../shared/definitions/index.ts";
import { ActivityRig } from "../../support/worlds/activity-rig.ts";

let rig: ActivityRig;
beforeAll(async () => {
  rig = await ActivityRig.start();
});
afterAll(() => rig.stop());
afterEach(async () => {
  await rig.stopWorkers();
  await rig.bus.purge(rig.names.activitiesStream, ">", Number.MAX_SAFE_INTEGER);
});

/** Code that runs until it is let go, and knows how many of it run at once. */
function gauge() {
  let running = 0;
  let most = 0;
  const gates: (() => void)[] = [];
  return {
    get most() {
      return most;
    },
    get running() {
      return running;
    },
    async during<T>(work: () => Promise<T>): Promise<T> {
      running++;
      most = Math.max(most, running);
      rig.facts.look();
      try {
        return await work();
      } finally {
        running--;
      }
    },
    untilOpened: () => new Promise<void>((resolve) => gates.push(resolve)),
    open: () => {
      for (const gate of gates.splice(0)) gate();
    },
  };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

it("runs no more than its slots, over activities of different names", async () => {
  const meter = gauge();
  const left = defineActivity("left", { run: () => meter.during(() => pause(3)) });
  const right = defineActivity("right", { run: () => meter.during(() => pause(3)) });
  const { happenings } = await rig.startWorker({ left, right }, { WORKER_ACTIVITY_SLOTS: "4" });
  const publishing = [];
  for (let n = 0; n < 60; n++) {
    publishing.push(rig.publishTask({ instanceId: `i-l-${n}`, name: "left" }));
    publishing.push(rig.publishTask({ instanceId: `i-r-${n}`, name: "right" }));
  }
  await Promise.all(publishing);
  await rig.untilQueueIsEmpty();
  expect(meter.most).toBe(4);
  expect(happenings.filter((h) => h.kind === "activity.ended")).toHaveLength(120);
});

it("hands back what it cannot start, so that an idle worker gets it", async () => {
  const meter = gauge();
  const slow = defineActivity("slow", { run: () => meter.during(() => meter.untilOpened()) });
  const other = defineActivity("other", { run: () => "done" });
  const env = { WORKER_ACTIVITY_SLOTS: "2", WORKER_SURPLUS_WAIT: "50ms" };
  const busy = await rig.startWorker({ slow, other }, env);
  await rig.publishTask({ instanceId: "i-slow-1", name: "slow" });
  await rig.publishTask({ instanceId: "i-slow-2", name: "slow" });
  await rig.facts.until("both slots taken", () => (meter.running === 2 ? true : undefined));
  await rig.publishTask({ instanceId: "i-other-1", name: "other" });
  await rig.publishTask({ instanceId: "i-other-2", name: "other" });
  await rig.facts.until("a task handed back", () =>
    busy.happenings.find((h) => h.kind === "activity.handed_back" && h.why === "surplus"),
  );
  const idle = await rig.startWorker({ other }, env);
  expect((await rig.report("i-other-1")).workerId).toBe(idle.workerId);
  expect((await rig.report("i-other-2")).workerId).toBe(idle.workerId);
  meter.open();
  expect((await rig.report("i-slow-1")).workerId).toBe(busy.workerId);
  await rig.untilQueueIsEmpty();
});

it("works off a long backlog of several activities with one slot, poisoning nothing", async () => {
  const work = ["one", "two", "three"].map((name) => defineActivity(name, { run: () => pause(15) }));
  const env = { WORKER_ACTIVITY_SLOTS: "1", WORKER_SURPLUS_WAIT: "10ms", WORKER_MAX_DELIVERIES: "3" };
  const { happenings } = await rig.startWorker({ work }, env);
  for (let n = 0; n < 15; n++) {
    for (const { name } of work) await rig.publishTask({ instanceId: `i-b-${name}-${n}`, name });
  }
  await rig.untilQueueIsEmpty();
  const reports = rig.reports.filter((r) => r.instanceId.startsWith("i-b-"));
  expect(reports).toHaveLength(45);
  expect(reports.every((r) => r.result.kind === "completed")).toBe(true);
  expect(happenings.filter((h) => h.kind === "activity.poisoned")).toEqual([]);
  expect(happenings.filter((h) => h.kind === "activity.handed_back").length).toBeGreaterThan(0);
});

it("leaves alone what is not its own: other queues, activities not allowed", async () => {
  const mine = defineActivity("mine", { run: () => "mine" });
  const notMine = defineActivity("not-mine", { run: () => "not mine" });
  const far = defineActivity("far", { queue: "far-away", run: () => "far" });
  await rig.startWorker({ mine, notMine, far }, { WORKER_QUEUES: "default", WORKER_ACTIVITIES: "mine,far" });
  await rig.publishTask({ instanceId: "i-gpu", name: "mine" }, "gpu");
  await rig.publishTask({ instanceId: "i-far", name: "far" }, "far-away");
  await rig.publishTask({ instanceId: "i-not", name: "not-mine" });
  await rig.publishTask({ instanceId: "i-mine", name: "mine" });
  await rig.report("i-mine");
  // The acknowledgement leaves a moment after the report.
  await expect.poll(async () => (await rig.bus.streamInfo(rig.names.activitiesStream))?.messages).toBe(3);
  const gpu = await rig.startWorker({ mine }, { WORKER_QUEUES: "gpu" });
  expect((await rig.report("i-gpu")).workerId).toBe(gpu.workerId);
  const anywhere = await rig.startWorker({ far, notMine });
  expect((await rig.report("i-far")).workerId).toBe(anywhere.workerId);
  expect((await rig.report("i-not")).workerId).toBe(anywhere.workerId);
});

it("keeps tasks of the queue's two namings apart", async () => {
  const first = defineActivity("b_c", { queue: "a", run: () => "first" });
  const second = defineActivity("c", { queue: "a_b", run: () => "second" });
  await rig.startWorker({ first, second });
  await rig.publishTask({ instanceId: "i-first", name: "b_c" }, "a");
  await rig.publishTask({ instanceId: "i-second", name: "c" }, "a_b");
  expect((await rig.report("i-first")).result).toMatchObject({ output: { json: "first" } });
  expect((await rig.report("i-second")).result).toMatchObject({ output: { json: "second" } });
});

it("keeps a long task for itself by saying that it is at it", async () => {
  let runs = 0;
  const long = defineActivity("long", {
    async run() {
      runs++;
      await pause(2500);
      return "done";
    },
  });
  const env = { WORKER_ACK_WAIT: "1s" };
  await rig.startWorker({ long }, env);
  await rig.startWorker({ long }, env);
  await rig.publishTask({ instanceId: "i-long", name: "long" });
  await rig.report("i-long");
  await rig.untilQueueIsEmpty();
  expect(runs).toBe(1);
});
