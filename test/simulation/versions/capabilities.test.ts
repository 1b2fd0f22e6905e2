/**
 * C1: a client that can write to the bus, but was given no task, reports for others. Every report is refused.
 */
import { describe, expect, test } from "vitest";
import { needsHeader } from "../../../schemas/index.ts";
import { bucketSubject, encode, headerNames, leaseKeys } from "../../../shared/bus/index.ts";
import { derivedCapability } from "../../../shared/capabilities/index.ts";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { beatKeys } from "../../../shared/leases/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { type Member, World } from "../../../shared/testing/world/world.ts";

let world: World;
let holder: Member;
/** Ends the activities and calls that wait. */
let finish: () => void = () => undefined;
let last: unknown[] = [];
const waits = () =>
  new Promise<string>((resolve) => {
    finish = () => resolve("true");
  });

let cancelled = 0;
let finishAll: () => void = () => undefined;
const slow = defineActivity("slow", {
  run: async (ctx) => {
    void ctx.stream.write("from the worker");
    ctx.signal.addEventListener("abort", () => cancelled++);
    const waiting = waits();
    const [one, before] = [finish, finishAll];
    finishAll = () => {
      before();
      one();
    };
    return waiting;
  },
});
const beats = defineActivity("beats", {
  heartbeatTimeout: "5s",
  retry: { maxAttempts: 3, initialDelay: "1s" },
  run: async (ctx) => {
    last.push(ctx.lastHeartbeat);
    if (ctx.attempt === 3) return "done";
    ctx.heartbeat(`step ${ctx.attempt}`);
    throw new Error("again");
  },
});
const beaten = defineActivity("beaten", { heartbeatTimeout: "30s", run: async () => waits() });
const box = defineSession("box", {
  init: () => ({}),
  calls: { ask: call({ run: async (_state: object, _input: null) => waits() }) },
});
const child = defineOrchestration("child", { run: async (ctx) => void (await ctx.waitForSignal("go")) });
const app = collectApp({
  slow,
  beats,
  beaten,
  box,
  plain: defineOrchestration("plain", { run: (ctx) => ctx.run(slow, null) }),
  beating: defineOrchestration("beating", { run: (ctx) => ctx.run(beats, null) }),
  waiting: defineOrchestration("waiting", { run: (ctx) => ctx.run(beaten, null) }),
  held: defineOrchestration("held", {
    run: async (ctx) => {
      await using session = await ctx.openSession(box);
      return await session.ask(null);
    },
  }),
  child,
  quick: defineOrchestration("quick", { run: async () => "forged" }),
  parent: defineOrchestration("parent", { run: (ctx) => ctx.child(child, null, { id: "c" }) }),
});

async function open(seed: number, settings?: Record<string, string>): Promise<void> {
  last = [];
  cancelled = 0;
  finishAll = () => undefined;
  world = new World({ seed, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  holder = await world.worker(undefined, settings ? { settings } : {});
  await world.watcher();
}

const forge = (subject: string, body: object, headers: Record<string, string> = {}) =>
  world.run(world.outside.publish(subject, encode(body), { headers }));
const refused = () =>
  world.happenings.flatMap((one) => (one.kind === "capability.refused" ? [`${one.what} ${one.why}`] : []));
const forgedResult = { kind: "completed", output: { json: "forged" } };
const attempt = { v: 1, execution: 1, of: 2, attempt: 1, workerId: "mallory" };

test("results: without a capability, with a made-up one, with one for another task", async () => {
  await open(1);
  const handle = await world.start("plain", null, "a");
  const other = await world.start("plain", null, "b");
  await world.clock.advance(100);
  // The capability of a worker for b, as it lies in the queue or comes by the lane: its own, not another's.
  const shown =
    (await world.run(world.outside.read(world.names.streamsStream, world.names.streamsOf("b")))) ?? [];
  const { capability } = JSON.parse(Buffer.from(shown[0]?.body ?? "").toString());
  expect(capability).toMatch(/^q/);
  for (const more of [{}, { capability: "q0123456789012345678901" }, { capability }])
    await forge(world.names.verb("a", "activity"), { ...attempt, ...more, result: forgedResult });
  await world.clock.advance(100);
  expect(refused()).toEqual(["activity missing", "activity wrong", "activity wrong"]);
  finish();
  await world.clock.advance(100);
  expect((await world.run(other.result())) ?? (await world.run(handle.result()))).toBe("true");
});

test("by the lane: a result, a task given back, a task held", async () => {
  await open(2);
  const owner = world.happenings.flatMap((one) => (one.kind === "partition.gained" ? [one] : []));
  expect(owner.length).toBeGreaterThan(0);
  const handle = await world.start("plain", null, "a");
  await world.clock.advance(100);
  const subject = (verb: "report" | "returned") => world.names.laneOfOwner("orchestrator-1", "a", verb);
  const reply = await world.run(
    world.outside.request(subject("report"), encode({ ...attempt, result: forgedResult }), {
      timeoutMs: 1_000,
    }),
  );
  expect(reply.kind === "reply" && JSON.parse(Buffer.from(reply.body).toString())).toMatchObject({
    kind: "elsewhere",
  });
  world.outside.send(subject("returned"), encode({ v: 1, execution: 1, of: 2, attempt: 1 }));
  await world.clock.advance(100);
  expect(refused()).toEqual(["activity missing", "return missing"]);
  expect(world.count("lane.recalled")).toBe(0);
  finish();
  expect(await world.run(handle.result())).toBe("true");
});

test("by the lane: a dead worker's task that somebody else says it has goes out again", async () => {
  await open(14);
  const handle = await world.start("plain", null, "a");
  await world.clock.advance(100);
  const { outside, names } = world;
  await world.run(
    outside.subscribe(names.laneOfHoldings(holder.id), {}, ({ reply }) =>
      reply?.(encode({ v: 1, workerId: holder.id, missing: [], capabilities: ["q0123456789012345678901"] })),
    ),
  );
  holder.kill();
  await world.worker();
  await world.clock.advance(5_000);
  expect(refused()).toContain("holding wrong");
  expect(world.count("lane.recalled")).toBe(1);
  finish();
  expect(await world.run(handle.result())).toBe("true");
});

test("a cancel notice: without a capability, or with one for another task, it ends nothing", async () => {
  await open(9);
  const handle = await world.start("plain", null, "a");
  const other = await world.start("plain", null, "b");
  await world.clock.advance(100);
  const shown =
    (await world.run(world.outside.read(world.names.streamsStream, world.names.streamsOf("b")))) ?? [];
  const { capability } = JSON.parse(Buffer.from(shown[0]?.body ?? "").toString());
  for (const more of [{}, { capability: "q0123456789012345678901" }, { capability }])
    world.outside.send(world.names.cancels, encode({ instanceId: "a", execution: 1, of: 2, ...more }));
  await world.clock.advance(100);
  expect(cancelled).toBe(0);
  finishAll();
  expect(await world.run(handle.result())).toBe("true");
  expect(await world.run(other.result())).toBe("true");
});

test("a cancel notice for tasks that still wait: without their capability, they are run all the same", async () => {
  await open(15, { WORKER_ACTIVITY_SLOTS: "1" });
  const ids = Array.from({ length: 12 }, (_, i) => `w${i}`);
  for (const id of ids) await world.start("plain", null, id);
  await world.clock.advance(500);
  // Some wait in the worker and some in the queue, where it looks for what it has heard of them meanwhile.
  for (const instanceId of ids)
    for (const more of [{}, { capability: "q0123456789012345678901" }])
      world.outside.send(world.names.cancels, encode({ instanceId, execution: 1, of: 2, ...more }));
  for (let round = 0; round < 60; round++) {
    await world.clock.advance(500);
    finish();
  }
  await world.clock.advance(500);
  expect(world.count("activity.ended")).toBe(ids.length);
});

test("a cancel notice of the engine ends the task", async () => {
  await open(10);
  const handle = await world.start("plain", null, "a");
  await world.clock.advance(100);
  await world.run(handle.cancel());
  await world.clock.advance(200);
  expect(cancelled).toBe(1);
  await expect(world.run(handle.result())).rejects.toThrow();
});

test("a session: lost, checkpointed or claimed by somebody who does not hold it", async () => {
  await open(3);
  const handle = await world.start("held", null, "a");
  await world.clock.advance(500);
  const entry = world.happenings.find((one) => one.kind === "session.attached");
  const sessionId = entry?.kind === "session.attached" ? entry.sessionId : "";
  const report = (about: object) => ({ v: 1, sessionId, attachment: 1, report: about });
  await forge(world.names.verb("a", "session"), report({ kind: "lost", reason: "expired" }));
  await forge(world.names.verb("a", "session"), {
    ...report({ kind: "init_failed", error: { code: "x", message: "x", retryable: false } }),
    capability: "c1.0123456789012345678901",
  });
  await world.clock.advance(500);
  expect(refused()).toEqual(["session missing", "session wrong"]);
  finish();
  expect(await world.run(handle.result())).toBe("true");
});

describe("each kind of report about a session", () => {
  const epoch = 1;
  const place = { workerId: "mallory", nodeId: "n", host: "h", resourceId: "r" };
  const on = { ...place, epoch, attachment: 1 };
  const checkpoint = { key: "k", bytes: 1, epoch, calls: 1 };
  const ofHolder = [
    { kind: "claimed", on },
    { kind: "activated", on, initMs: 1, warm: false, restored: false },
    { kind: "init_failed", error: { code: "x", message: "x", retryable: false } },
    { kind: "lost", reason: "expired" },
    { kind: "parked", epoch },
    { kind: "checkpointed", checkpoint },
    { kind: "metadata", epoch, change: {} },
    { kind: "blob", epoch, name: "n" },
    { kind: "refused", error: { code: "x", message: "x", retryable: false } },
  ];
  const ofEngine = [{ kind: "wanted" }, { kind: "closed" }, { kind: "spent", upTo: 9 }];

  test("is refused without the claim's capability, and the engine's own with it", async () => {
    await open(3);
    let claimed: string | undefined;
    await world.run(
      world.outside.subscribe("offers.*.*", {}, ({ body }) => {
        claimed = JSON.parse(Buffer.from(body).toString()).capability;
      }),
    );
    const handle = await world.start("held", null, "a");
    await world.clock.advance(500);
    const entry = world.happenings.find((one) => one.kind === "session.attached");
    const sessionId = entry?.kind === "session.attached" ? entry.sessionId : "";
    const forgeAbout = (report: object, capability?: string) =>
      forge(world.names.verb("a", "session"), { v: 1, sessionId, attachment: 1, report, capability });
    for (const report of [...ofHolder, ...ofEngine]) {
      await forgeAbout(report);
      await forgeAbout(report, "c1.0123456789012345678901");
    }
    expect(claimed).toMatch(/^c1\./);
    for (const report of ofEngine) await forgeAbout(report, claimed);
    for (const report of ofHolder.filter(({ kind }) => kind !== "lost"))
      await forgeAbout(report, derivedCapability(claimed ?? "", "lost"));
    await world.clock.advance(500);
    const [n, m] = [ofHolder.length, ofEngine.length];
    const said = refused();
    expect(said.filter((one) => one === "session missing")).toHaveLength(n + m);
    expect(said.filter((one) => one === "session wrong")).toHaveLength(n + m + m + n - 1);
    const letters = await world.run(world.outside.read(world.names.deadStream, "dead.inbox.*"));
    expect(letters, "none was refused for its form").toHaveLength(said.length);
    for (const { body } of letters ?? []) expect(Buffer.from(body).toString()).toContain('"not_capable"');
    finish();
    expect(await world.run(handle.result())).toBe("true");
  });
});

test("a message that only a newer process could read: a worker's stops no instance", async () => {
  await open(11);
  const handle = await world.start("plain", null, "a");
  await world.clock.advance(100);
  const newer = { [needsHeader]: "99" };
  await forge(world.names.verb("a", "activity"), { ...attempt, result: { kind: "of the future" } }, newer);
  await forge(world.names.verb("a", "activity"), { future: true }, newer);
  await forge(world.names.verb("a", "session"), { v: 1, sessionId: "s", attachment: 1 }, newer);
  await forge(world.names.signal("a", "pool"), {}, newer);
  await world.clock.advance(500);
  finish();
  expect(await world.run(handle.result())).toBe("true");
});

test("a claim that a worker made up is passed to no other worker", async () => {
  await open(12);
  const other = await world.worker();
  const offered: string[] = [];
  await world.run(
    world.outside.subscribe("offers.*.*", {}, ({ body }) => void offered.push(Buffer.from(body).toString())),
  );
  const handle = await world.start("held", null, "a");
  await world.clock.advance(500);
  const [claim = ""] = offered.splice(0);
  const pass = (body: object) =>
    world.run(world.outside.request(world.names.claimPass(other.id), encode(body), { timeoutMs: 300 }));
  const { capability, ...open1 } = JSON.parse(claim);
  for (const forged of [
    open1,
    { ...open1, capability: "c1.0123456789012345678901" },
    { ...JSON.parse(claim), sessionId: "b" },
  ])
    expect((await pass(forged)).kind).toBe("timeout");
  expect(offered).toEqual([]);
  expect(refused()).toEqual(["claim missing", "claim wrong", "claim wrong"]);
  expect((await pass(JSON.parse(claim))).kind, "one that an orchestrator made").toBe("reply");
  expect(offered).toHaveLength(1);
  finish();
  expect(await world.run(handle.result())).toBe("true");
});

describe("SEC-2: message ids of the engine that somebody uses up first", () => {
  const usedUp = (msgId: string) =>
    world.run(world.outside.publish(world.names.signal("mine", "x"), encode({}), { msgId }));

  test("the start of a child, and the report of its end", async () => {
    await open(13);
    for (const execution of [1, 2])
      for (const msgId of [`child-p-${execution}-2`, `done-c-${execution}`, `cancel-p-${execution}-c`])
        await usedUp(msgId);
    const handle = await world.start("parent", null, "p");
    await world.clock.advance(500);
    await world.signal("c", "go", null);
    expect(await world.run(handle.result())).toBeUndefined();
  });
});

test("a chunk whose message id somebody used up first is stored all the same (SEC-2)", async () => {
  await open(16);
  for (const run of [1, 2]) {
    const msgId = `chunk-a-1-2-1-${run}-0`;
    await world.run(world.outside.publish(world.names.stream("mine", 1, 2), encode({}), { msgId }));
  }
  const handle = await world.start("plain", null, "a");
  await world.clock.advance(100);
  finish();
  expect(await world.run(handle.result())).toBe("true");
  const stored = await world.run(world.outside.read(world.names.streamsStream, world.names.streamsOf("a")));
  expect(stored).toHaveLength(1);
});

test("by the lane: a worker that says in another's place that a session is ready", async () => {
  await open(17);
  holder.pause("let through");
  const on = { workerId: "mallory", nodeId: "n", host: "h", resourceId: "r", epoch: 1, attachment: 1 };
  const ready = { kind: "activated", on, initMs: 1, warm: false, restored: false };
  await world.run(
    world.outside.subscribe("offers.*.*", {}, ({ body, reply }) => {
      const { sessionId, attachment } = JSON.parse(Buffer.from(body).toString());
      reply?.(encode({ verdict: "taken", used: 1, report: { v: 1, sessionId, attachment, report: ready } }));
    }),
  );
  await world.start("held", null, "a");
  await world.clock.advance(500);
  expect(refused()).toEqual(["session missing"]);
  const events = (await world.history("a"))?.flatMap((commit) => commit.events.map(({ kind }) => kind));
  expect(events).toContain("session.opened");
  expect(events).not.toContain("session.activated");
});

test("what others can read has derived capabilities in it, and none that its owner reports with", async () => {
  await open(18);
  const { outside, names } = world;
  const whole = new Set<string>();
  const collect = ({ body }: { body: Uint8Array }) => {
    const text = Buffer.from(body).toString();
    for (const [, capability = ""] of text.matchAll(/"capability":"([^"]+)"/g)) whole.add(capability);
  };
  for (const given of ["offers.*.*", "lanes.activities.*.*", "lanes.workers.*.*.*", "sessions.*.*.calls.*"])
    await world.run(outside.subscribe(given, {}, collect));
  const heard: string[] = [];
  for (const open of [names.cancels, "lanes.holdings.*", "notices.*.*"])
    await world.run(outside.subscribe(open, {}, ({ body }) => void heard.push(Buffer.from(body).toString())));
  for (const [name, id] of [
    ["plain", "a"],
    ["beating", "b"],
    ["held", "c"],
    ["waiting", "d"],
  ] as const)
    await world.start(name, null, id);
  await world.clock.advance(1_000);
  for (const message of (await world.run(outside.read(names.activitiesStream, "activities.>"))) ?? [])
    collect(message);
  await world.run(world.client.cancel("a"));
  await world.clock.advance(5_000);
  expect([...new Set([...whole].map((one) => one[0]))].sort()).toEqual(["c", "q", "s"]);
  const stored: string[] = [];
  for (const [stream, filter] of [
    ...["leases", "sessions", "workers", "heartbeats", "instances"].map((bucket) => [
      `KV_${names.bucket(bucket as "leases")}`,
      bucketSubject(names.bucket(bucket as "leases"), ">"),
    ]),
    [names.streamsStream, "streams.>"],
  ] as [string, string][])
    for (const { subject, body } of (await world.run(outside.read(stream, filter))) ?? [])
      stored.push(`${subject} ${Buffer.from(body).toString()}`);
  const all = [...heard, ...stored].join("\n");
  expect(all).toMatch(/"lossCapability":"c1\./);
  expect(all).toMatch(/"chunk".*"capability":"q/);
  expect(all).toMatch(/\.beat\.d\.1\.2\.1\.beaten\.30000\.q/);
  for (const capability of whole) expect(all.includes(capability), capability).toBe(false);
});

test("a chunk of a stream: readers do not see it", async () => {
  await open(4);
  const handle = await world.start("plain", null, "a");
  await world.clock.advance(100);
  await forge(world.names.stream("a", 1, 2), {
    v: 1,
    attempt: 1,
    run: 1,
    index: 1,
    at: 0,
    chunk: { json: "forged" },
  });
  const read = async () => {
    const chunks: unknown[] = [];
    for await (const { chunk } of world.client.stream("a", { follow: false })) chunks.push(chunk);
    return chunks;
  };
  expect(await world.run(read())).toEqual(["from the worker"]);
  expect(refused()).toEqual(["stream missing"]);
  finish();
  expect(await world.run(handle.result())).toBe("true");
});

test("heartbeat details: the next attempt does not see them", async () => {
  await open(5);
  const handle = await world.start("beating", null, "a");
  await world.clock.advance(300);
  expect(last).toEqual([undefined]);
  const subject = bucketSubject(world.names.bucket("heartbeats"), "a.1.2");
  await forge(subject, { attempt: 1, at: 0, details: "forged" });
  expect(await world.run(handle.result())).toBe("done");
  expect(last, "the second finds a forgery and drops it, the third what the second wrote").toEqual([
    undefined,
    undefined,
    "step 2",
  ]);
  expect(refused()).toEqual(["heartbeat missing"]);
});

test("the silence of a run that beats: a key without its capability, or with another", async () => {
  await open(6);
  const handle = await world.start("plain", null, "a");
  await world.clock.advance(100);
  const address = { instanceId: "a", execution: 1, of: 2, attempt: 1, name: "slow", heartbeatMs: 1000 };
  for (const capability of [undefined, "q0123456789012345678901"]) {
    const key = bucketSubject(world.names.bucket("leases"), beatKeys.of({ ...address, capability }));
    await world.run(world.outside.publish(key, encode({ v: 1, holder: "mallory" }), { ttlMs: 1000 }));
  }
  await world.clock.advance(20_000);
  expect(refused()).toEqual(["activity missing", "activity wrong"]);
  finish();
  expect(await world.run(handle.result())).toBe("true");
});

test("a child: an instance that calls itself another's child does not answer for it", async () => {
  await open(7);
  const handle = await world.start("parent", null, "p");
  await world.clock.advance(100);
  const parent = JSON.stringify({ instanceId: "p", execution: 1, of: 2 });
  await forge(world.names.start("evil", "quick"), {}, { [headerNames.parent]: parent });
  await world.clock.advance(500);
  expect(refused()).toEqual(["start missing"]);
  await world.signal("c", "go", null);
  expect(await world.run(handle.result())).toBeUndefined();
});

test("a real loss is believed: from the watcher, with what the register says", async () => {
  await open(8);
  const handle = await world.start("held", null, "a");
  await world.clock.advance(500);
  const entry = world.happenings.find((one) => one.kind === "session.attached");
  const sessionId = entry?.kind === "session.attached" ? entry.sessionId : "";
  const lease = await world.run(
    world.outside.last(
      `KV_${world.names.bucket("leases")}`,
      bucketSubject(world.names.bucket("leases"), leaseKeys.session(sessionId, 1)),
    ),
  );
  expect(JSON.parse(Buffer.from(lease?.body ?? "").toString()).session.lossCapability).toMatch(/^c1\./);
  holder.kill();
  await expect(world.run(handle.result())).rejects.toThrow(/session/);
  expect(refused()).toEqual([]);
});
