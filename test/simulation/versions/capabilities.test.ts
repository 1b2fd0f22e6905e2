/**
 * C1: a client that can write to the bus, but was given no task, reports for others. Every report is refused.
 */
import { expect, test } from "vitest";
import { bucketSubject, encode, headerNames, leaseKeys } from "../../../shared/bus/index.ts";
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

const slow = defineActivity("slow", {
  run: async (ctx) => {
    void ctx.stream.write("from the worker");
    return waits();
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
const box = defineSession("box", {
  init: () => ({}),
  calls: { ask: call({ run: async (_state: object, _input: null) => waits() }) },
});
const child = defineOrchestration("child", { run: async (ctx) => void (await ctx.waitForSignal("go")) });
const app = collectApp({
  slow,
  beats,
  box,
  plain: defineOrchestration("plain", { run: (ctx) => ctx.run(slow, null) }),
  beating: defineOrchestration("beating", { run: (ctx) => ctx.run(beats, null) }),
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

async function open(seed: number): Promise<void> {
  last = [];
  world = new World({ seed, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  holder = await world.worker();
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
