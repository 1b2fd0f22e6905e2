import { afterEach, beforeEach, expect, test } from "vitest";
import { Commit, InstanceId, type InstanceSummary } from "../../../schemas/index.ts";
import { Bucket, encode, Payloads } from "../../../shared/bus/index.ts";
import { HistoryStore } from "../../../shared/history/index.ts";
import { systemRuntime } from "../../../shared/runtime/index.ts";
import { blobKeys } from "../../support/nats/blob-keys.ts";
import { type RunningWatcher, WatcherWorld } from "../../support/worlds/watcher-world.ts";

let world: WatcherWorld;
let histories: HistoryStore;
let instances: Bucket;
let workers: Bucket;

beforeEach(async () => {
  world = await WatcherWorld.start();
  const { bus, names } = world;
  histories = new HistoryStore({
    bus,
    names,
    runtime: systemRuntime(),
    layout: "per-instance",
    maxOwnStreams: 100,
    shards: 2,
    replicas: 1,
  });
  instances = new Bucket(bus, names.bucket("instances"));
  workers = new Bucket(bus, names.bucket("workers"));
});
afterEach(() => world?.stop());

const sweeping = { sweepEveryMs: 100, archiveAfterMs: 200, deadAfterMs: 300 };

async function ended(id: string, endedAt = Date.now()): Promise<void> {
  const instanceId = InstanceId.parse(id);
  const commit = Commit.parse({
    v: 1,
    commitId: `c-${id}`,
    instanceId,
    execution: 1,
    at: endedAt,
    inbox: [1],
    events: [
      { id: 1, kind: "instance.started", name: "n", input: { json: 1 } },
      { id: 2, kind: "instance.completed", output: { json: 2 } },
    ],
  });
  await histories.append(await histories.place(id), commit, { startsExecution: true });
  await summarise(id, { status: "completed", endedAt });
}

async function summarise(id: string, fields: Partial<InstanceSummary>): Promise<void> {
  const summary: InstanceSummary = {
    v: 1,
    instanceId: InstanceId.parse(id),
    status: "running",
    execution: 1,
    events: 2,
    updatedAt: Date.now(),
    ...fields,
  };
  await instances.put(id, encode(summary));
}

/** So many in all: what became due at different moments may take a sweep each. */
const swept = (watcher: RunningWatcher, wanted: string, count: number) =>
  watcher.heard("retention.swept", () => {
    const sweeps = watcher.happenings.filter((h) => h.kind === "retention.swept");
    const done = sweeps.filter(({ step }) => step === wanted).reduce((sum, sweep) => sum + sweep.done, 0);
    return done === count;
  });

const ownStreams = () => world.bus.streamNames(world.names.ownHistories);

test("the history of an ended instance leaves its own stream and stays readable; a running one stays", async () => {
  await ended("over");
  await ended("wrong");
  await summarise("wrong", { status: "running" });
  const a = await world.watcher("a", sweeping);
  await swept(a, "archive", 1);
  expect(await ownStreams()).toEqual([world.names.ownHistoryStream("wrong")]);
  expect(await histories.readAll("over")).toMatchObject([{ commitId: "c-over" }]);
});

test("a history that cannot be moved is named, and keeps none of the others in their streams", async () => {
  for (const id of ["a", "b", "c"]) await ended(id);
  const { bus, names } = world;
  const [stream, subject] = [names.ownHistoryStream("a"), names.ownHistory("a")];
  const last = await bus.last(stream, subject);
  await bus.publish(subject, encode("no commit"), { expectLastSeq: last?.seq ?? 0 });
  const a = await world.watcher("a", sweeping);
  await swept(a, "archive", 2);
  expect(await ownStreams()).toEqual([stream]);
  const fault = await a.heard("fault", ({ where }) => where === "watcher.retention.archive");
  expect(fault).toMatchObject({ message: expect.stringMatching(/^the history of a stays in a stream/) });
});

test("closed sessions leave the register with their checkpoints and blobs, those held or running stay", async () => {
  await summarise("i-ended", { status: "failed", endedAt: Date.now() });
  await summarise("i-running", {});
  const owner = await world.owner(5000);
  await world.register("closed", { phase: "closed" });
  await world.register("orphan", { phase: "lost", instanceId: InstanceId.parse("i-ended") });
  await world.register("active", { instanceId: InstanceId.parse("i-running") });
  await world.register("held", { phase: "closed" });
  const lease = await world.attach(owner, "held");
  await world.bus.blobs.put("checkpoints/closed/1-1", new Uint8Array(3));
  await world.bus.blobs.put("checkpoints/active/1-1", new Uint8Array(3));
  await world.bus.blobs.put("session-blobs/closed/1-1", new Uint8Array(3));
  await world.bus.blobs.put("session-blobs/active/1-1", new Uint8Array(3));
  const a = await world.watcher("a", sweeping);
  await swept(a, "sessions", 2);
  expect(await blobKeys(world.bus.blobs, "checkpoints/")).toEqual(["checkpoints/active/1-1"]);
  expect(await blobKeys(world.bus.blobs, "session-blobs/")).toEqual(["session-blobs/active/1-1"]);
  const left: string[] = [];
  for await (const { key } of world.sessions.entries()) left.push(key);
  expect(left.sort()).toEqual(["active", "held"]);
  await owner.release(lease);
  await swept(a, "sessions", 3);
  expect(await world.sessions.get("held")).toBeUndefined();
});

test("dead workers leave nothing behind; those registered or holding a lease are left alone", async () => {
  const { bus, names } = world;
  const owner = await world.owner(5000);
  await world.attach(owner, "kept"); // held by w1
  for (const workerId of ["w1", "dead-1", "live-1"]) {
    await bus.ensureConsumer({
      stream: names.sessionsStream,
      name: names.workerConsumer(workerId, "secret"),
      filter: names.sessionWorkOf(workerId),
      ackWaitMs: 10_000,
    });
    await bus.publish(names.sessionWork(workerId, "s"), encode({}));
  }
  // Sent to a worker whose consumer is gone already.
  await bus.publish(names.sessionWork("dead-2", "s"), encode({}));
  await workers.put("live-1", encode({}));
  const a = await world.watcher("a", sweeping);
  await swept(a, "workers", 2);
  const consumers = (await bus.consumers(names.sessionsStream)).map(({ name }) => name);
  expect(consumers.sort()).toEqual([
    names.workerConsumer("live-1", "secret"),
    names.workerConsumer("w1", "secret"),
  ]);
  const work = await bus.read(names.sessionsStream, names.allSessionWork);
  expect(work?.map(({ subject }) => names.parseSessionWork(subject)?.workerId)).toEqual(["w1", "live-1"]);
});

test("instances past their retention are forgotten whole, others not", async () => {
  const { bus, names } = world;
  const payloads = new Payloads(bus.blobs, { inlineBytes: 10 });
  await ended("old", Date.now() - 10_000);
  await ended("new");
  // Its name is that of the folder of everybody's checkpoints.
  await ended("checkpoints", Date.now() - 10_000);
  await bus.blobs.put("checkpoints/active/1-1", new Uint8Array(3));
  for (const id of ["old", "new"]) {
    await payloads.wrap("x".repeat(100), id);
    await bus.publish(names.stream(id, 1, 2), encode({ chunk: 1 }));
  }
  await bus.publish(names.signal("old", "late"), encode({}));
  const a = await world.watcher("a", { ...sweeping, archiveAfterMs: 60_000, retainForMs: 5000 });
  await swept(a, "instances", 2);
  expect(await blobKeys(bus.blobs, "checkpoints/")).toEqual(["checkpoints/active/1-1"]);
  expect(await histories.exists("old")).toBe(false);
  expect(await histories.exists("new")).toBe(true);
  expect(await blobKeys(bus.blobs, "old/")).toEqual([]);
  expect(await blobKeys(bus.blobs, "new/")).toHaveLength(1);
  expect(await bus.read(names.inboxStream, names.inboxOf("old"))).toEqual([]);
  expect(await bus.read(names.streamsStream, names.streamsOf("old"))).toEqual([]);
  expect(await bus.read(names.streamsStream, names.streamsOf("new"))).toHaveLength(1);
  const left: string[] = [];
  for await (const { key } of instances.entries()) left.push(key);
  expect(left).not.toContain("old");
  expect(left).toContain("new");
});
