/**
 * What this version cannot read. E2: entries of registers are rebuilt from the history and written over (defect 17). E1:
 * messages and events of kinds that only a newer version knows are held for it, never buried, dropped or guessed.
 */
import { expect, test } from "vitest";
import { newestGeneration } from "../../../schemas/index.ts";
import { Bucket, type BucketName, encode } from "../../../shared/bus/index.ts";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { sharedPlace } from "../../../shared/history/locate.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const counter = defineSession("counter", {
  init: () => ({ n: 0 }),
  calls: { count: call({ run: (state) => ++state.n }) },
});
const quick = defineActivity("quick", { run: () => "done" });
const app = collectApp({
  counter,
  quick,
  waits: defineOrchestration("waits", { run: (ctx) => ctx.waitForSignal("go") }),
  works: defineOrchestration("works", {
    async run(ctx) {
      await ctx.waitForSignal("go");
      return ctx.run(quick, null);
    },
  }),
  holds: defineOrchestration("holds", {
    async run(ctx) {
      const session = await ctx.openSession(counter, { id: "held", onLost: "fail", leaseTtl: "3s" });
      await session.count(null);
      return session
        .count(null)
        .then(() => ctx.waitForSignal("go"))
        .then(() => session.count(null))
        .catch((error) => error.code);
    },
  }),
});

async function calmWorld(): Promise<World> {
  const world = new World({ seed: 3, app, faults: noFaults, layout: "shared" });
  await world.prepare();
  return world;
}

const garbled = async (world: World, bucket: BucketName, key: string, how: (was: object) => unknown) => {
  const entries = new Bucket(world.outside, world.names.bucket(bucket));
  const was = await world.run(entries.get(key));
  const value: object = JSON.parse(new TextDecoder().decode(was?.value));
  await world.run(entries.put(key, encode(how(value))));
};

test("defect 17: an unreadable summary of a finished instance is written anew from its history", async () => {
  const world = await calmWorld();
  await world.orchestrator();
  await world.watcher();
  const handle = await world.start("waits", undefined, "a");
  await world.signal("a", "go", "word");
  expect(await world.run(handle.result())).toBe("word");
  await world.clock.advance(1000);
  await garbled(world, "instances", "a", (was) => ({ ...was, status: "thriving" }));
  // A client that waits for it waits until it is there again.
  expect(await world.run(handle.result(), 600_000)).toBe("word");
  expect(await world.run(handle.status())).toMatchObject({ status: "completed", name: "waits" });
  expect(world.count("dead.lettered")).toBe(0);
});

test("defect 17: an unreadable summary does not stop the turns of its instance", async () => {
  const world = await calmWorld();
  await world.orchestrator();
  const handle = await world.start("waits", undefined, "a");
  await world.clock.advance(1000);
  await garbled(world, "instances", "a", () => ({ nothing: "of ours" }));
  await world.signal("a", "go", "word");
  expect(await world.run(handle.result(), 60_000)).toBe("word");
  expect(world.count("instance.parked")).toBe(0);
});

test.each([
  ["a phase of a later version", (was: object) => ({ ...was, phase: "hibernating" })],
  ["nothing of ours", () => ({ nothing: "of ours" })],
])("defect 17: the death of a worker is told though the register has %s", async (_what, how) => {
  const world = await calmWorld();
  await world.orchestrator();
  await world.watcher();
  const worker = await world.worker();
  const handle = await world.start("holds", undefined, "a");
  await world.clock.advance(3000);
  await garbled(world, "sessions", "held", how);
  worker.kill();
  await world.clock.advance(10_000);
  const kinds = (await world.history("a"))?.flatMap(({ events }) => events.map(({ kind }) => kind));
  expect(kinds).toContain("session.lost");
  await world.signal("a", "go", null);
  expect(await world.run(handle.result(), 600_000)).toBe("session_lost");
  expect(world.count("dead.lettered")).toBe(0);
});

test("a commit with an event of a later version parks its instance with that reason, until it can be read", async () => {
  const world = await calmWorld();
  const first = await world.orchestrator();
  const handle = await world.start("waits", undefined, "a");
  await world.clock.advance(1000);
  first.kill();
  const { stream, subject } = sharedPlace(world.names, "a", 2);
  const last = (await world.history("a"))?.at(-1);
  const event = { id: 99, kind: "instance.hibernated" };
  const later = encode({ ...last, commitId: "later", needs: newestGeneration + 1, events: [event] });
  const headers = { "Holdfast-Commit": "later", "Holdfast-Execution-Start": "1" };
  const stored = await world.run(world.outside.publish(subject, later, { headers }));
  await world.orchestrator();
  await world.signal("a", "go", "word");
  await world.clock.advance(10_000);
  const status = await world.run(handle.status());
  expect(status).toMatchObject({ status: "parked", error: { code: "needs_newer_version" } });
  expect(status?.error?.message).toContain(`generation ${newestGeneration + 1}`);
  // As if a process had come that can read it.
  if (stored.kind === "stored") await world.run(world.outside.deleteMessage(stream, stored.seq));
  expect(await world.run(handle.result(), 600_000)).toBe("word");
  expect(world.count("dead.lettered")).toBe(0);
});

test("a message marked for a later version parks its instance, and is there for whoever comes next", async () => {
  const world = await calmWorld();
  await world.orchestrator();
  const handle = await world.start("waits", undefined, "a");
  await world.clock.advance(1000);
  const headers = { "Holdfast-Needs": String(newestGeneration + 1) };
  const subject = world.names.verb("a", "wake").replace("wake", "hibernate");
  const stored = await world.run(world.outside.publish(subject, encode({ v: 1 }), { headers }));
  await world.clock.advance(10_000);
  expect(await world.run(handle.status())).toMatchObject({
    status: "parked",
    error: { code: "needs_newer_version" },
  });
  expect(world.count("dead.lettered")).toBe(0);
  const inbox = world.names.inboxStream;
  const waiting = await world.run(world.outside.read(inbox, world.names.inboxOf("a")));
  expect(waiting?.map(({ seq }) => seq)).toContain(stored.kind === "stored" ? stored.seq : -1);
});

test("a report of an unknown kind waits for a newer process and holds up nobody", async () => {
  const world = await calmWorld();
  await world.orchestrator();
  await world.worker();
  const handle = await world.start("works", undefined, "a");
  await world.clock.advance(1000);
  const report = { v: 1, execution: 1, of: 3, attempt: 1, workerId: "w", result: { kind: "hibernated" } };
  await world.run(world.outside.publish(world.names.verb("a", "activity"), encode(report)));
  await world.signal("a", "go", null);
  expect(await world.run(handle.result(), 60_000)).toBe("done");
  expect(world.count("dead.lettered")).toBe(0);
  const faults = world.happenings.flatMap((one) => (one.kind === "fault" ? [one.code] : []));
  expect(faults).toEqual(["needs_newer_version"]);
});

test("what is malformed is still a dead letter, with its reason", async () => {
  const world = await calmWorld();
  await world.orchestrator();
  await world.run(world.outside.publish(world.names.verb("a", "activity"), encode({ v: 1, of: "three" })));
  await world.clock.advance(1000);
  expect(world.happenings.filter(({ kind }) => kind === "dead.lettered")).toMatchObject([
    { code: "malformed_message" },
  ]);
});

test("a task that no worker can read fails with unreadable_task, and its retry goes on", async () => {
  const world = await calmWorld();
  await world.orchestrator();
  const handle = await world.start("works", undefined, "a");
  await world.signal("a", "go", null);
  await world.clock.advance(1000);
  const queue = world.names.activitiesStream;
  const [task] = (await world.run(world.outside.read(queue, world.names.activity("default", "quick")))) ?? [];
  const value: object = JSON.parse(new TextDecoder().decode(task?.body));
  if (task) await world.run(world.outside.deleteMessage(queue, task.seq));
  await world.run(world.outside.publish(task?.subject ?? "", encode({ ...value, timeouts: "later" })));
  await world.worker();
  expect(await world.run(handle.result(), 60_000)).toBe("done");
  const events = (await world.history("a"))?.flatMap((commit) => commit.events);
  expect(events).toContainEqual(
    expect.objectContaining({
      kind: "activity.attempt_failed",
      error: expect.objectContaining({ code: "unreadable_task" }),
    }),
  );
  expect(world.count("dead.lettered")).toBe(0);
});
