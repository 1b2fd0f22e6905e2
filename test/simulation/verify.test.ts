/**
 * The checker on an installation of which something was spoilt by hand: it names the law, the instance and the evidence.
 * And on one that is well, at work and at rest: it says nothing.
 */
import { expect, test } from "vitest";
import { Commit, InstanceSummary, WorkerInfo } from "../../schemas/index.ts";
import { bucketStream, bucketSubject, encode, leaseKeys } from "../../shared/bus/index.ts";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../shared/definitions/index.ts";
import { hash32 } from "../../shared/runtime/index.ts";
import { noFaults } from "../../shared/testing/memory/index.ts";
import { historyShards } from "../../shared/testing/world/members.ts";
import { type Member, sessionTtlMs, World } from "../../shared/testing/world/world.ts";
import {
  type JournalEntry,
  LeaseLog,
  lawIds,
  type VerifyOptions,
  violationLines,
} from "../../shared/verify/index.ts";

const add = defineActivity("add", { run: async (_ctx, n: number) => n + 1 });
/** No worker has it. */
const nowhere = defineActivity("nowhere", { run: async () => 1 });
const tally = defineSession("tally", {
  leaseTtl: "3s",
  init: async () => ({ n: 0 }),
  calls: { count: call({ run: (state: { n: number }, by: number) => (state.n += by) }) },
});
const waits = defineOrchestration("waits", {
  run: async (ctx, n: number) => {
    const sum = await ctx.run(add, n);
    return [sum, await ctx.waitForSignal<number>("go")];
  },
});
const app = collectApp({
  add,
  nowhere,
  tally,
  waits,
  holds: defineOrchestration("holds", {
    run: async (ctx, _input: unknown) => {
      await using session = await ctx.openSession(tally, { onLost: "reclaim" });
      await session.count(1);
      return [await ctx.waitForSignal<number>("go"), await session.count(1)];
    },
  }),
  asks: defineOrchestration("asks", { run: async (ctx, _input: unknown) => ctx.run(nowhere) }),
  naps: defineOrchestration("naps", { run: async (ctx, ms: number) => ctx.sleep(ms) }),
  parents: defineOrchestration("parents", {
    run: async (ctx, n: number) => ctx.child(waits, n, { id: "child" }),
  }),
  large: defineOrchestration("large", { run: async (_ctx, text: string) => text.length }),
});

const served = collectApp({ add, tally });

interface Scene {
  world: World;
  members: Member[];
  /** Everything that could mend it is gone. */
  dead(): void;
  verify(options?: Parameters<World["verify"]>[0]): Promise<string[]>;
}

async function scene(): Promise<Scene> {
  const world = new World({ seed: 1, app, faults: noFaults, layout: "shared", keepEnded: true });
  await world.prepare();
  const members = [
    await world.orchestrator(),
    await world.worker(undefined, { app: served }),
    await world.watcher(),
  ];
  return {
    world,
    members,
    dead: () => {
      for (const member of members) member.kill();
    },
    verify: async (options) => violationLines(await world.verify(options)),
  };
}

/** Started, and come as far as it comes by itself. */
async function started(world: World, name: string, input: unknown, id = name): Promise<string> {
  await world.start(name, input, id);
  await world.clock.advance(3_000);
  return id;
}

const write = ({ world }: Scene, bucket: "leases" | "workers" | "instances", key: string, value: unknown) =>
  world.run(world.outside.publish(bucketSubject(world.names.bucket(bucket), key), encode(value)));

async function entry<T>(
  { world }: Scene,
  bucket: "workers" | "instances",
  key: string,
  parse: (value: unknown) => T,
) {
  const name = world.names.bucket(bucket);
  const message = await world.run(world.outside.last(bucketStream(name), bucketSubject(name, key)));
  return parse(JSON.parse(new TextDecoder().decode(message?.body)));
}

const subjectOf = ({ names }: World, id: string): string =>
  names.sharedHistory(hash32(id) % historyShards, id);

/** A history written by none of the orchestrators. */
async function plant(
  { world }: Scene,
  instanceId: string,
  events: Record<string, unknown>[],
  at = 1,
): Promise<void> {
  const commit = Commit.parse({
    ...{ v: 1, commitId: "planted", instanceId, execution: 1, at, inbox: [] },
    events: events.map((event, index) => ({ id: index + 1, ...event })),
  });
  await world.run(world.outside.publish(subjectOf(world, instanceId), encode(commit)));
}

const start = { kind: "instance.started", name: "waits", input: { json: 1 } };

test("nothing is said of an installation that is well, at work and at rest", async () => {
  const stage = await scene();
  const { world } = stage;
  await using leases = await world.run(LeaseLog.start({ bus: world.outside, names: world.names }));
  const journal: JournalEntry[] = [];
  for (const [name, input] of Object.entries({
    waits: 1,
    holds: null,
    asks: null,
    naps: 600_000,
    parents: 1,
  })) {
    await started(world, name, input);
    journal.push({ kind: "started", instanceId: name });
  }
  await started(world, "large", "x".repeat(400_000));
  const atWork = await world.verify({ journal, leases, app, sessionCap: 100 });
  expect(violationLines(atWork)).toEqual([]);
  expect(atWork.read).toMatchObject({ instances: 7, "live instances": 6, replayed: 7, leases: 1 });
  expect(atWork.read.values).toBeGreaterThan(0);
  stage.members[1]?.kill();
  await world.worker(undefined, { app: served });
  await world.clock.advance(20_000);
  for (const id of ["waits", "holds", "child"]) await world.signal(id, "go", 7);
  journal.push({ kind: "signalled", instanceId: "waits", name: "go", value: 7 });
  await world.run(world.client.terminate("asks"));
  await world.run(world.client.cancel("naps"));
  await world.clock.advance(120_000);
  journal.push({ kind: "ended", instanceId: "waits", status: "completed", output: [2, 7] });
  const atRest = await world.verify({ journal, leases, app, quiet: true, lossMs: 1000, sessionCap: 100 });
  expect(violationLines(atRest)).toEqual([]);
  expect(atRest.spreads["loss recorded after the lease's expiry"]?.count).toBe(1);
  expect(atRest.spreads["end after a cancel"]?.count).toBe(1);
});

test("an instance that ended before the time asked for is left out, one that lives is not", async () => {
  const { world } = await scene();
  await started(world, "large", "x");
  await started(world, "waits", 1);
  const report = await world.verify({ since: world.clock.now() + 1 });
  expect(report.read).toMatchObject({ instances: 1, "left out": 1 });
});

type Spoil = (stage: Scene) => Promise<Parameters<World["verify"]>[0] | undefined>;

const strayLease = (instanceId: string, holder: string) => ({
  v: 1,
  holder,
  session: { instanceId, sessionId: "stray", attachment: 1 },
});

const spoilt: [law: string, what: string, spoil: Spoil][] = [
  [
    "I1",
    "a start that was acknowledged is nowhere",
    async () => ({ journal: [{ kind: "started", instanceId: "ghost" }] }),
  ],
  [
    "I1",
    "somebody was shown another result",
    async ({ world }) => {
      await started(world, "large", "abc");
      return { journal: [{ kind: "ended", instanceId: "large", status: "completed", output: 4 }] };
    },
  ],
  [
    "I3",
    "a commit that cannot be read",
    async (stage) => {
      await plant(stage, "torn", [start]);
      const { outside } = stage.world;
      await stage.world.run(outside.publish(subjectOf(stage.world, "torn"), encode("rubbish")));
      return {};
    },
  ],
  [
    "I5",
    "the code decides otherwise",
    async ({ world }) => {
      await started(world, "waits", 1);
      const other = defineOrchestration("waits", { run: async (ctx, _n: number) => ctx.sleep(1) });
      return { app: collectApp({ other }) };
    },
  ],
  [
    "I6",
    "two workers hold one session",
    async (stage) => {
      const id = await started(stage.world, "holds", null);
      stage.dead();
      const [session] = await sessionsOf(stage, id);
      const key = leaseKeys.session(session ?? "", 2);
      await write(stage, "leases", key, {
        ...strayLease(id, "other"),
        session: { instanceId: id, sessionId: session, attachment: 2 },
      });
      return {};
    },
  ],
  [
    "I6",
    "leases that were heard to overlap",
    async ({ world }) => {
      const leases = new LeaseLog();
      const word = { sessionId: "s", at: 1, kind: "held" as const };
      leases.add({ ...word, attachment: 1, seq: 1, holder: "a" });
      leases.add({ ...word, attachment: 2, seq: 2, holder: "b" });
      leases.add({ ...word, attachment: 1, seq: 3, holder: "a", kind: "released" as const });
      await world.clock.advance(1);
      return { leases };
    },
  ],
  [
    "I8",
    "a lease is gone and the instance was not told",
    async (stage) => {
      const id = await started(stage.world, "holds", null);
      stage.dead();
      const [session] = await sessionsOf(stage, id);
      const { outside, names } = stage.world;
      const bucket = names.bucket("leases");
      await stage.world.run(
        outside.purge(
          bucketStream(bucket),
          bucketSubject(bucket, leaseKeys.session(session ?? "", 1)),
          Number.MAX_SAFE_INTEGER,
        ),
      );
      return {};
    },
  ],
  [
    "I8",
    "a loss that was recorded too late",
    async ({ world, members }) => {
      await started(world, "holds", null);
      members[1]?.kill();
      await world.worker(undefined, { app: served });
      await world.clock.advance(sessionTtlMs + 20_000);
      return { lossMs: -1 };
    },
  ],
  [
    "I9",
    "a task that nobody has",
    async (stage) => {
      await started(stage.world, "asks", null);
      stage.dead();
      const { activitiesStream } = stage.world.names;
      await stage.world.run(stage.world.outside.purge(activitiesStream, ">", Number.MAX_SAFE_INTEGER));
      return {};
    },
  ],
  [
    "I9",
    "a timer that nothing will fire",
    async (stage) => {
      await started(stage.world, "naps", 600_000);
      stage.dead();
      const { timersStream, allTimers } = stage.world.names;
      await stage.world.run(stage.world.outside.purge(timersStream, allTimers, Number.MAX_SAFE_INTEGER));
      return {};
    },
  ],
  [
    "I9",
    "a child that was never started",
    async (stage) => {
      await plant(stage, "alone", [
        start,
        {
          kind: "child.scheduled",
          name: "waits",
          childId: "nobody",
          input: { json: 1 },
          mode: "attached",
          grants: [],
        },
      ]);
      return {};
    },
  ],
  [
    "I9",
    "mail that nobody takes",
    async (stage) => {
      await started(stage.world, "waits", 1);
      stage.dead();
      await stage.world.signal("waits", "other", 1);
      await stage.world.clock.advance(120_000);
      return {};
    },
  ],
  [
    "I9",
    "a queue that should be empty",
    async ({ world }) => {
      await started(world, "asks", null);
      return { quiet: true };
    },
  ],
  [
    "I12",
    "a signal that was acknowledged and is not there",
    async ({ world }) => {
      await started(world, "waits", 1);
      return { journal: [{ kind: "signalled", instanceId: "waits", name: "go", value: 5 }] };
    },
  ],
  [
    "I12",
    "signals of one sender in another order",
    async ({ world }) => {
      await started(world, "waits", 1);
      for (const n of [1, 2]) await world.signal("waits", "other", n);
      await world.clock.advance(3_000);
      const signalled = { kind: "signalled" as const, instanceId: "waits", name: "other" };
      return {
        journal: [
          { ...signalled, value: 2 },
          { ...signalled, value: 1 },
        ],
      };
    },
  ],
  [
    "I12",
    "an update that was answered and is not there",
    async ({ world }) => {
      await started(world, "waits", 1);
      return { journal: [{ kind: "updated", instanceId: "waits", updateId: "u1" }] };
    },
  ],
  [
    "I13",
    "a shutdown that ran twice",
    async () => ({ journal: [1, 2].map(() => ({ kind: "shutdown", sessionId: "s", epoch: 3 })) }),
  ],
  [
    "I14",
    "a worker with more sessions than it takes",
    async (stage) => {
      await started(stage.world, "holds", null);
      stage.dead();
      const worker = stage.members[1]?.id ?? "";
      const info = await entry(stage, "workers", worker, (value) => WorkerInfo.parse(value));
      await write(stage, "workers", worker, {
        ...info,
        slots: { ...info.slots, sessions: { used: 1, max: 0 } },
      });
      return {};
    },
  ],
  [
    "QUOTA-1",
    "more sessions than the quota allows",
    async (stage) => {
      await started(stage.world, "holds", null);
      stage.dead();
      const worker = stage.members[1]?.id ?? "";
      const info = await entry(stage, "workers", worker, (value) => WorkerInfo.parse(value));
      await write(stage, "workers", worker, { ...info, quotas: { types: { tally: { used: 1, max: 0 } } } });
      return {};
    },
  ],
  [
    "I15",
    "a lease of an instance that is not there",
    async (stage) => {
      await write(stage, "leases", leaseKeys.session("stray", 1), strayLease("gone", "somebody"));
      return {};
    },
  ],
  [
    "I15",
    "a summary without a history",
    async (stage) => {
      const summary = { v: 1, instanceId: "gone", status: "running", execution: 1, events: 1, updatedAt: 1 };
      await write(stage, "instances", "gone", summary);
      return {};
    },
  ],
  [
    "I15",
    "the consumer of a worker that is gone",
    async (stage) => {
      stage.dead();
      const { names, outside } = stage.world;
      const spec = {
        stream: names.sessionsStream,
        name: names.workerConsumer("gone", "secret"),
        filter: names.sessionWorkOf("gone"),
      };
      await stage.world.run(outside.ensureConsumer({ ...spec, ackWaitMs: 1000 }));
      return {};
    },
  ],
  [
    "I16",
    "a cancel that nothing keeps from its end",
    async (stage) => {
      await plant(stage, "deaf", [start, { kind: "cancel.requested" }]);
      await stage.world.clock.advance(120_000);
      return {};
    },
  ],
  [
    "I17",
    "what should have come to its end",
    async ({ world }) => {
      await started(world, "waits", 1);
      return { journal: [{ kind: "started", instanceId: "waits", ends: true }] };
    },
  ],
  ["I18", "a branch that was never reached", async () => ({ branches: { "turn.fenced": 0 } })],
  [
    "CALL-1",
    "calls in another order than they were asked for",
    async () => {
      const ran = {
        kind: "call" as const,
        sessionId: "s",
        epoch: 3,
        instanceId: "i",
        execution: 1,
        attempt: 1,
      };
      return {
        journal: [
          { ...ran, of: 8 },
          { ...ran, of: 7 },
        ],
      };
    },
  ],
  [
    "VALUE-2",
    "a value that is not in the object store",
    async ({ world }) => {
      await started(world, "large", "x".repeat(400_000));
      const [blob] = await world.run(world.outside.blobs.list("large/"));
      await world.run(world.outside.blobs.delete(blob?.key ?? ""));
      return {};
    },
  ],
  [
    "E2",
    "a summary that says something else",
    async (stage) => {
      const id = await started(stage.world, "large", "x");
      const summary = await entry(stage, "instances", id, (value) => InstanceSummary.parse(value));
      await write(stage, "instances", id, { ...summary, status: "failed" });
      return {};
    },
  ],
  [
    "E2",
    "a summary with another output",
    async (stage) => {
      const id = await tallied(stage);
      const summary = await entry(stage, "instances", id, (value) => InstanceSummary.parse(value));
      await write(stage, "instances", id, { ...summary, output: { json: "another" } });
      return {};
    },
  ],
];

/** An instance that has ended with an output. */
async function tallied({ world }: Scene): Promise<string> {
  const id = await started(world, "waits", 1);
  await world.signal(id, "go", 7);
  await world.clock.advance(3_000);
  return id;
}

test("E1: what a later version writes beside an output is no other output", async () => {
  const stage = await scene();
  const id = await tallied(stage);
  const summary = await entry(stage, "instances", id, (value) => InstanceSummary.parse(value));
  await write(stage, "instances", id, { ...summary, output: { ...summary.output, later: true } });
  expect(await stage.verify()).toEqual([]);
});

async function sessionsOf({ world }: Scene, id: string): Promise<string[]> {
  const events = (await world.history(id))?.flatMap((commit) => commit.events) ?? [];
  return events.flatMap((event) => (event.kind === "session.opened" ? [event.sessionId] : []));
}

test.each(spoilt)("%s: %s", async (law, _what, spoil) => {
  const stage = await scene();
  const options: Partial<VerifyOptions> = (await spoil(stage)) ?? {};
  const said = await stage.verify(options);
  expect(said.filter((line) => line.startsWith(`${law} `))).not.toEqual([]);
});

test("every law the checker names has a spoilt installation, or a spoilt history, that it notices", () => {
  // Those that one history shows are in test/unit/verify/history-laws.test.ts.
  const ofHistories = ["I2", "I3", "I4", "I6", "I7", "I10", "I11", "I12", "I13", "LENDER-1"];
  const here = spoilt.map(([law]) => law);
  expect(lawIds.filter((law) => !here.includes(law) && !ofHistories.includes(law))).toEqual([]);
});
