import { afterAll, beforeAll, expect, it } from "vitest";
import { defineActivity } from "../../../shared/definitions/index.ts";
import { ActivityRig } from "../../support/worlds/activity-rig.ts";

let rig: ActivityRig;
beforeAll(async () => {
  rig = await ActivityRig.start();
});
afterAll(() => rig.stop());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

it("loses nothing when NATS is killed under load, and runs on by itself", async () => {
  const tasks = 300;
  const work = defineActivity("work", { run: () => pause(20) });
  const { happenings } = await rig.startWorker(
    { work },
    { WORKER_ACTIVITY_SLOTS: "10", WORKER_ACK_WAIT: "1s" },
  );
  const ids = Array.from({ length: tasks }, (_, n) => `i-outage-${n}`);
  await Promise.all(ids.map((instanceId) => rig.publishTask({ instanceId, name: "work" })));
  await rig.facts.until("the first third", () => (rig.reports.length > tasks / 3 ? true : undefined));
  await rig.nats.kill();
  await rig.nats.restart();
  await Promise.all(ids.map((id) => rig.report(id)));
  await rig.untilQueueIsEmpty();
  expect(happenings.filter((h) => h.kind === "activity.poisoned")).toEqual([]);
  expect(rig.reports.every((r) => r.result.kind === "completed")).toBe(true);
});

it("makes its consumer again when somebody deleted it", async () => {
  const lasting = defineActivity("lasting", { run: () => "here" });
  const { happenings } = await rig.startWorker({ lasting });
  const { activitiesStream } = rig.names;
  await rig.bus.deleteConsumer(activitiesStream, rig.names.activityConsumer("default", "lasting"));
  await rig.facts.until("the loss to be seen", () =>
    happenings.find((h) => h.kind === "fault" && h.code === "consumer_gone"),
  );
  await rig.publishTask({ instanceId: "i-lasting", name: "lasting" });
  expect((await rig.report("i-lasting")).result).toMatchObject({ output: { json: "here" } });
});
