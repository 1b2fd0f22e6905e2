import { expect, it } from "vitest";
import { z } from "zod";
import { ActivityReport } from "../../../schemas/index.ts";
import { workerConfig } from "../../../services/worker/config.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import { workerSettings } from "../../../services/worker/settings.ts";
import { Worker } from "../../../services/worker/worker.ts";
import {
  decode,
  defaultTopology,
  encode,
  ensureTopology,
  Payloads,
  subjects,
} from "../../../shared/bus/index.ts";
import { collectApp, defineActivity } from "../../../shared/definitions/index.ts";
import { type Happening, seededRandom, sleep } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, someFaults } from "../../../shared/testing/memory/index.ts";

const names = subjects();
const slots = 3;

/** A fleet on a bad day: messages lost, late and doubled, one worker dies, one comes late, the broker restarts. */
async function badDay(seed: number) {
  const clock = new SimulatedClock();
  const random = seededRandom(seed);
  const broker = new MemoryBroker({ clock, seed, faults: someFaults });
  const happenings: Happening[] = [];
  const busy = new Map<string, number>();
  let most = 0;
  const activities = ["short", "middle", "long"].map((name, size) =>
    defineActivity(name, {
      async run(ctx, n: number) {
        const now = (busy.get(ctx.workerId) ?? 0) + 1;
        busy.set(ctx.workerId, now);
        most = Math.max(most, now);
        await sleep(clock, random.next() * 10 ** (size + 1) * 3);
        busy.set(ctx.workerId, (busy.get(ctx.workerId) ?? 0) - 1);
        return n;
      },
    }),
  );
  const startWorker = async () => {
    const bus = broker.connect();
    const env = { WORKER_ACTIVITY_SLOTS: String(slots), WORKER_ACK_WAIT: "2s", WORKER_MAX_DELIVERIES: "12" };
    const config = workerConfig(z.object(workerSettings).parse(env));
    const runtime = { clock, random, announce: (happening: Happening) => void happenings.push(happening) };
    const identity = createIdentity(config, { host: "h", pid: 1 }, random);
    const payloads = new Payloads(bus.blobs);
    const worker = new Worker({
      bus,
      names,
      runtime,
      app: collectApp({ activities }),
      identity,
      config,
      payloads,
    });
    await worker.start();
    return { worker, bus };
  };

  const outside = broker.connect();
  await clock.run(ensureTopology(outside, names, { ...defaultTopology, historyShards: 1 }));
  const victim = await clock.run(startWorker());
  const steady = await clock.run(startWorker());
  const tasks = 90;
  for (let n = 0; n < tasks; n++) {
    const activity = activities[n % 3];
    const task = {
      ...{ v: 1, instanceId: `i-${n}`, execution: 1, of: 1, attempt: 1, name: activity?.name },
      ...{ input: { json: n }, scheduledAt: clock.now(), timeouts: {}, reportStart: n % 5 === 0 },
    };
    const subject = names.activity("default", activity?.name ?? "");
    const msgId = `task-${n}`;
    let outcome = "unknown";
    while (outcome !== "stored") {
      outcome = (await clock.run(outside.publish(subject, encode(task), { msgId, timeoutMs: 500 }))).kind;
    }
    if (n === 20) victim.bus.kill();
    if (n === 40) broker.stop();
    if (n === 40) await clock.advance(3_000);
    if (n === 40) broker.start();
  }
  const late = await clock.run(startWorker());
  const left = () => broker.streams.get(names.activitiesStream)?.size;
  await clock.runUntil(() => left() === 0, 3_600_000);
  const inbox = (await clock.run(outside.read(names.inboxStream, "inbox.>"))) ?? [];
  await clock.run(Promise.all([steady.worker.stop(), late.worker.stop()]));
  const reports = inbox.map((message) => {
    const report = decode(ActivityReport, message.body);
    if (report.kind === "invalid") throw new Error(report.message);
    return { instanceId: message.subject.split(".")[2], ...report.value };
  });
  return { reports, happenings, most, tasks, hits: broker.fate.hits };
}

it("reports every task of a fleet on a bad day, within the slots, and strands nothing", async () => {
  const struck: Record<string, number> = {};
  for (let seed = 1; seed <= 25; seed++) {
    const { reports, happenings, most, tasks, hits } = await badDay(seed);
    const completed = reports.filter((r) => r.result.kind === "completed");
    const byTask = new Set(completed.map((r) => r.instanceId));
    expect({ seed, reported: byTask.size, most }).toEqual({ seed, reported: tasks, most: slots });
    // A result that is sent again comes again (SEC-2); how often is bounded by how often no answer came.
    expect(completed.length, `seed ${seed}`).toBeLessThan(tasks + 60);
    expect({ seed, poisoned: happenings.filter((h) => h.kind === "activity.poisoned") }).toEqual({
      seed,
      poisoned: [],
    });
    for (const [fault, count] of Object.entries(hits)) struck[fault] = (struck[fault] ?? 0) + count;
    struck.redelivered = (struck.redelivered ?? 0) + happenings.filter(isRedelivered).length;
  }
  // I18: a run in which nothing went wrong proves nothing.
  expect(Object.keys(struck)).toEqual(
    expect.arrayContaining(["ackLost", "publishUnanswered", "publishLost", "deliveredTwice", "deliveryLost"]),
  );
  expect(struck.redelivered).toBeGreaterThan(0);
});

const isRedelivered = (happening: Happening): boolean =>
  happening.kind === "activity.started" && happening.redelivered;
