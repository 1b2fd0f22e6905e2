/** Streams that an operator deletes and a service creates anew: no sequence of the old one means anything in the new one. */
import { expect, test } from "vitest";
import { Bucket, leaseKeys } from "../../../shared/bus/index.ts";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const collects = defineOrchestration("collects", {
  run: async (ctx) => {
    const seen: unknown[] = [];
    while (seen.length < 6) seen.push(await ctx.waitForSignal("n"));
    return seen;
  },
});
const app = collectApp({ collects });

async function open(): Promise<World> {
  const world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  return world;
}

test("defect 3: signals to a re-created inbox are not taken for those applied before", async () => {
  const world = await open();
  const owner = await world.orchestrator();
  const handle = await world.start("collects", null, "a");
  for (const n of [1, 2, 3]) await world.signal("a", "n", n);
  await world.clock.advance(1_000);
  await world.run(owner.stop());
  await world.run(world.outside.deleteStream(world.names.inboxStream));
  await world.prepare();
  await world.orchestrator();
  for (const n of [4, 5, 6]) await world.signal("a", "n", n);
  expect(await world.run(handle.result(), 60_000)).toEqual([1, 2, 3, 4, 5, 6]);
});

test("defect 3: a re-created lease bucket never gives an old epoch again", async () => {
  const world = await open();
  const bucket = new Bucket(world.outside, world.names.bucket("leases"));
  const claim = async (): Promise<number> => {
    const outcome = await world.run(bucket.create("session.s.1", new Uint8Array(), { ttlMs: 3_000 }));
    if (outcome.kind !== "written") throw new Error(outcome.kind);
    return outcome.revision;
  };
  const before = await claim();
  await world.run(world.outside.deleteStream(bucket.stream));
  await world.prepare();
  expect(await claim()).toBeGreaterThan(before);
});

test("partitions of an orchestrator that died while its bucket was created anew are taken over", async () => {
  const world = await open();
  await world.orchestrator();
  const dies = await world.orchestrator();
  const bucket = new Bucket(world.outside, world.names.engineBucket);
  const { broker } = world;
  const spec = broker.streams.get(bucket.stream)?.spec;
  if (!spec) throw new Error("there is no bucket of the engine's leases");
  dies.kill();
  broker.delete(bucket.stream);
  broker.ensure(spec);
  await world.clock.advance(15_000);
  const holds = async () => {
    const keys: string[] = [];
    for await (const { key } of bucket.entries(leaseKeys.allPartitions)) keys.push(key);
    return keys.sort();
  };
  expect(await world.run(holds())).toEqual([0, 1, 2, 3].map((partition) => leaseKeys.partition(partition)));
});

test("a session whose lease is gone without a trace during its init is opened by the next worker", async () => {
  let world: World;
  const slow = defineSession("slow", {
    init: async () => void (await sleep(world.clock, 2_000)),
    calls: { ping: call({ run: () => "pong" }) },
  });
  const uses = defineOrchestration("uses", {
    async run(ctx) {
      await using session = await ctx.openSession(slow);
      return await session.ping(undefined);
    },
  });
  world = new World({ seed: 1, app: collectApp({ slow, uses }), faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  const { bus } = await world.worker();
  const publish = bus.publish.bind(bus);
  // The instance does not get the report that the session was claimed.
  bus.publish = async (subject, body, options) =>
    subject === world.names.verb("a", "session") && world.count("lease.lost") === 0
      ? { kind: "unknown" }
      : publish(subject, body, options);
  const handle = await world.start("uses", null, "a");
  for (let i = 0; i < 100 && world.count("claim.seen") === 0; i++) await world.clock.advance(10);
  expect(world.count("claim.seen")).toBe(1);
  recreateLeases(world);
  expect(await world.run(handle.result(), 60_000)).toBe("pong");
});

test("a session whose claim and lease are gone without a trace, with those who knew of them, is opened", async () => {
  let world: World;
  const slow = defineSession("slow", {
    init: async () => void (await sleep(world.clock, 2_000)),
    calls: { ping: call({ run: () => "pong" }) },
  });
  const uses = defineOrchestration("uses", {
    async run(ctx) {
      await using session = await ctx.openSession(slow, { creationTimeout: "10m" });
      return await session.ping(undefined);
    },
  });
  world = new World({ seed: 1, app: collectApp({ slow, uses }), faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  const owner = await world.orchestrator();
  await world.watcher();
  const worker = await world.worker();
  // The instance does not get the report that the session was claimed; the orchestrator that offered it knows.
  const publish = worker.bus.publish.bind(worker.bus);
  worker.bus.publish = async (subject, body, options) =>
    subject === world.names.verb("a", "session") ? { kind: "unknown" } : publish(subject, body, options);
  const handle = await world.start("uses", null, "a");
  await world.clock.advance(200);
  expect(world.happenings).toContainEqual(expect.objectContaining({ kind: "claim.seen", verdict: "taken" }));
  recreateLeases(world);
  worker.kill();
  owner.kill();
  await world.orchestrator();
  await world.worker();
  expect(await world.run(handle.result(), 60_000)).toBe("pong");
});

/** A claim that waits in its queue, for a worker that may come later, is not lost. */
test("a session that nobody could claim yet is left alone", async () => {
  const rare = defineSession("rare", {
    requires: { tags: ["gpu"] },
    init: () => ({}),
    calls: { ping: call({ run: () => "pong" }) },
  });
  const uses = defineOrchestration("uses", {
    async run(ctx) {
      await using session = await ctx.openSession(rare, { creationTimeout: "10m" });
      return await session.ping(undefined);
    },
  });
  const world = new World({
    seed: 1,
    app: collectApp({ rare, uses }),
    faults: { ...noFaults, latencyMs: [1, 1] },
  });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  await world.worker();
  const handle = await world.start("uses", null, "a");
  await world.clock.advance(120_000);
  await world.worker(undefined, { settings: { WORKER_TAGS: "gpu" } });
  expect(await world.run(handle.result(), 60_000)).toBe("pong");
  expect(world.count("session.lost")).toBe(0);
});

function recreateLeases({ broker, outside, names }: World): void {
  const { stream } = new Bucket(outside, names.bucket("leases"));
  const spec = broker.streams.get(stream)?.spec;
  if (!spec) throw new Error("there is no bucket of leases");
  broker.delete(stream);
  broker.ensure(spec);
}
