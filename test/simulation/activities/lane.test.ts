/**
 * The lane: tasks and calls go straight to a live worker and back. What happens when a message, a worker, an
 * orchestrator or both of them are lost on the way; laws LANE-1–LANE-4 of services/orchestrator/lane/lane.ts.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Commit } from "../../../schemas/index.ts";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { fixedGeneration } from "../../../shared/fleet/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { type BusFaults, noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { tapWorld } from "../../support/nats/tapped-bus.ts";

let runs: string[] = [];
let order: number[] = [];
let world: World;

const quick = defineActivity("quick", { input: z.int(), run: (_ctx, n) => n });
const long = defineActivity("long", {
  input: z.int(),
  run: async (ctx, ms) => {
    runs.push(ctx.workerId);
    await new Promise<void>((resolve) => world.clock.after(ms, resolve));
    return ms;
  },
});
const resumed = defineActivity("resumed", {
  run: async (ctx) => {
    runs.push(ctx.workerId);
    if (ctx.lastHeartbeat !== undefined) return ctx.lastHeartbeat;
    ctx.heartbeat({ at: 7 });
    return new Promise(() => undefined);
  },
});
const resume = defineOrchestration("resume", { run: (ctx) => ctx.run(resumed, null) });
const counter = defineSession("counter", {
  init: () => ({ n: 0 }),
  calls: {
    add: call({
      input: z.int(),
      run: (state: { n: number }, n) => {
        order.push(n);
        state.n += n;
        return state.n;
      },
    }),
  },
});
const patient = defineSession("patient", {
  init: () => ({}),
  calls: {
    work: call({
      input: z.int(),
      run: async (_state, ms) => {
        runs.push("work");
        await new Promise<void>((resolve) => world.clock.after(ms, resolve));
        return ms;
      },
    }),
  },
});
const longCall = defineOrchestration("long-call", {
  input: z.int(),
  run: async (ctx, ms) => {
    await using session = await ctx.openSession(patient, { onLost: "fail" });
    return await session.work(ms);
  },
});
const steps = defineOrchestration("steps", {
  input: z.int(),
  run: async (ctx, n) => {
    for (let i = 0; i < n; i++) await ctx.run(quick, i);
    return n;
  },
});
const longStep = defineOrchestration("long-step", { input: z.int(), run: (ctx, ms) => ctx.run(long, ms) });
const wide = defineOrchestration("wide", {
  input: z.int(),
  run: async (ctx, n) => {
    const all = await Promise.all(Array.from({ length: n }, (_, i) => ctx.run(quick, i)));
    return all.length;
  },
});
const wideLong = defineOrchestration("wide-long", {
  input: z.int(),
  run: async (ctx, n) => {
    const all = await Promise.all(Array.from({ length: n }, () => ctx.run(long, 400)));
    return all.length;
  },
});
const afterTimer = defineOrchestration("after-timer", {
  run: async (ctx) => {
    await ctx.sleep(50);
    await ctx.run(quick, 1);
    return ctx.run(quick, 2);
  },
});
const calls = defineOrchestration("calls", {
  input: z.int(),
  run: async (ctx, n) => {
    // Seed 27 loses the delivery of the watcher's word that the holder died, which comes again after the 60 s that an
    // inbox waits for an acknowledgement. The usual 30 s to be opened have to follow that.
    await using session = await ctx.openSession(counter, { onLost: "reclaim", creationTimeout: "90s" });
    const results = [];
    for (let i = 0; i < n; i += 2) results.push(...(await Promise.all([session.add(i), session.add(i + 1)])));
    return results.length;
  },
});
const app = collectApp({
  patient,
  longCall,
  quick,
  long,
  resumed,
  resume,
  counter,
  steps,
  longStep,
  wide,
  wideLong,
  afterTimer,
  calls,
});

async function open(faults: BusFaults = noFaults, options: { alwaysReplay?: boolean; seed?: number } = {}) {
  const { seed = 1, alwaysReplay = false } = options;
  world = new World({ seed, app, faults, alwaysReplay });
  await world.prepare();
}

beforeEach(() => {
  runs = [];
  order = [];
});

const stored = (stream: string): number => world.everStored(stream);
const waiting = async (stream: string): Promise<number> =>
  (await world.run(world.outside.streamInfo(stream)))?.messages ?? -1;
/** Tasks that were meant for the lane. */
const laned = (commits: readonly Commit[] | undefined): number[] => [
  ...new Set((commits ?? []).flatMap((commit) => commit.lane ?? [])),
];

/** Until the activity has begun so often. */
async function untilRuns(count: number): Promise<void> {
  for (let passed = 0; runs.length < count; passed += 10) {
    expect(passed, `${runs.length} of ${count} runs`).toBeLessThan(120_000);
    await world.clock.advance(10);
  }
}

describe("on a good day", () => {
  test.each([false, true])(
    "nothing but the start is stored beside the history; always replaying %s",
    async (alwaysReplay) => {
      await open(noFaults, { alwaysReplay });
      await world.orchestrator();
      await world.worker();
      const handle = await world.start("steps", 5, "a");
      expect(await world.run(handle.result())).toBe(5);
      expect(stored(world.names.activitiesStream)).toBe(0);
      expect(stored(world.names.inboxStream)).toBe(1);
      await world.clock.advance(100);
      expect(await waiting(world.names.inboxStream), "the anchor is acknowledged").toBe(0);
      const commits = (await world.history("a")) ?? [];
      checkHistory(commits);
      expect(laned(commits)).toHaveLength(5);
      const start = commits[0]?.inbox[0];
      expect(commits.map(({ anchor }) => anchor)).toEqual(Array.from({ length: 6 }, () => start));
    },
  );

  test("a wide fan-out goes by the lane, many tasks in a message, dealt out to all workers", async () => {
    await open();
    const offers: string[] = [];
    tapWorld(world, (said) => {
      if (/^lanes\.(activities|workers)\./.test(said.subject) && !said.answer) offers.push(said.subject);
      return said;
    });
    await world.orchestrator();
    await world.worker();
    await world.worker();
    const handle = await world.start("wide", 600, "a");
    expect(await world.run(handle.result())).toBe(600);
    const commits = (await world.history("a")) ?? [];
    checkHistory(commits);
    expect(laned(commits)).toHaveLength(600);
    expect(stored(world.names.activitiesStream)).toBe(0);
    expect(stored(world.names.inboxStream)).toBe(1);
    expect(offers.length).toBeLessThan(60);
    const workers = new Set(offers.map((subject) => subject.split(".")[2]));
    expect(workers.size).toBe(2);
  });

  test("what a fan-out has no slots for goes by the queue, while the first of it still run", async () => {
    await open();
    await world.orchestrator();
    await world.worker();
    const handle = await world.start("wide-long", 250, "a");
    await untilRuns(100);
    expect(await world.run(handle.result())).toBe(250);
    expect(runs).toHaveLength(250);
    expect(stored(world.names.activitiesStream)).toBeGreaterThanOrEqual(100);
    checkHistory((await world.history("a")) ?? []);
  });

  test("while a worker of 0.1.0 is alive every message is one task", async () => {
    await open();
    const bodies: string[] = [];
    tapWorld(world, (said) => {
      if (/^lanes\.(activities|workers)\./.test(said.subject)) bodies.push(Buffer.from(said.body).toString());
      return said;
    });
    await world.orchestrator(undefined, { generation: fixedGeneration(1) });
    await world.worker();
    const handle = await world.start("wide", 100, "a");
    expect(await world.run(handle.result())).toBe(100);
    expect(bodies.length).toBeGreaterThan(0);
    for (const body of bodies) expect(body).not.toContain('"tasks"');
  });

  test("without a message to stand for it, a task goes by the queue; the next one by the lane again", async () => {
    // The timer of the process comes before the schedule of the server.
    await open({ ...noFaults, scheduleDelayMs: [200, 200] });
    await world.orchestrator();
    await world.worker();
    const handle = await world.start("after-timer", null, "a");
    expect(await world.run(handle.result())).toBe(2);
    expect(stored(world.names.activitiesStream)).toBe(1);
    expect(laned(await world.history("a"))).toHaveLength(1);
  });

  test("calls of a session go by the lane and stay in order", async () => {
    await open();
    await world.orchestrator();
    await world.watcher();
    await world.worker();
    const handle = await world.start("calls", 20, "a");
    expect(await world.run(handle.result())).toBe(20);
    expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i));
    // Only the close.
    expect(stored(world.names.sessionsStream)).toBe(1);
  });
});

describe("the subject of a session's work", () => {
  const heard: string[] = [];
  const hear = async (subject: string) => {
    heard.length = 0;
    await world.run(world.outside.subscribe(subject, {}, (message) => heard.push(message.subject)));
  };

  test("`sessions.>` shows all of it: calls by the lane and the close by the queue", async () => {
    await open();
    heard.length = 0;
    tapWorld(world, (said) => {
      if (!said.answer) heard.push(said.subject);
      return said;
    });
    await world.orchestrator();
    await world.watcher();
    await world.worker();
    const handle = await world.start("calls", 4, "a");
    expect(await world.run(handle.result())).toBe(4);
    await world.clock.advance(1_000);
    const work = heard.filter((subject) => subject.startsWith("sessions."));
    const [, workerId = "", sessionId = "", , type = ""] = work[0]?.split(".") ?? [];
    const direct = world.names.sessionCalls(type, workerId, sessionId);
    expect(work).toEqual([direct, direct, world.names.sessionWork(workerId, sessionId)]);
    expect(heard.filter((subject) => subject.startsWith("lanes.sessions."))).toEqual([]);
  });

  test("is listened to while the session is held, and by nobody afterwards", async () => {
    await open();
    await world.orchestrator();
    await world.watcher();
    await world.worker();
    await hear("sessions.*.*.calls.*");
    const handle = await world.start("long-call", 1_000, "a");
    await untilRuns(1);
    const ask = (subject: string) =>
      world.run(world.outside.request(subject, new TextEncoder().encode("{}"), { timeoutMs: 2_000 }));
    const direct = heard[0] ?? "";
    expect(await ask(direct), "what is no call of it is refused").toMatchObject({ kind: "reply" });
    await world.run(handle.result());
    await world.clock.advance(1_000);
    heard.length = 0;
    await ask(direct);
    expect(heard, "only whoever looks on hears it").toEqual([direct]);
    const listening = [...world.broker.plain.subscribers.of(direct)].map(({ filter }) => filter);
    expect(listening, "the onlooker's subscription and no worker's").toEqual(["sessions.*.*.calls.*"]);
  });

  test("of the first generation is used while somebody of 0.1.0 is alive, and served", async () => {
    await open();
    await world.orchestrator(undefined, { generation: fixedGeneration(1) });
    await world.watcher();
    await world.worker();
    await hear("lanes.sessions.>");
    const handle = await world.start("calls", 4, "a");
    expect(await world.run(handle.result())).toBe(4);
    expect(heard).toHaveLength(2);
    // Only the close.
    expect(stored(world.names.sessionsStream)).toBe(1);
  });

  test("nobody listens there: the calls go by the queue, in order", async () => {
    await open();
    await world.orchestrator();
    await world.watcher();
    const connect = world.broker.connect.bind(world.broker);
    // A worker that knows neither subject.
    world.broker.connect = (options) => {
      const bus = connect(options);
      const subscribe = bus.subscribe.bind(bus);
      bus.subscribe = (subject, how, onMessage) =>
        subscribe(subject.includes(".calls.") ? "unheard" : subject, how, onMessage);
      return bus;
    };
    await world.worker();
    const handle = await world.start("calls", 4, "a");
    expect(await world.run(handle.result())).toBe(4);
    expect(order).toEqual([0, 1, 2, 3]);
    expect(stored(world.names.sessionsStream)).toBe(5);
  });
});

describe("what is lost on the way", () => {
  test.each([11, 12, 13, 14, 15, 16])(
    "half of all plain messages: everything ends, each result once; seed %s",
    async (seed) => {
      await open({ ...noFaults, latencyMs: [1, 1], plainLost: 0.5 }, { seed, alwaysReplay: seed % 2 === 0 });
      await world.orchestrator();
      await world.watcher();
      await world.worker();
      const handles = await Promise.all([
        world.start("steps", 20, "steps"),
        world.start("wide", 90, "wide"),
        world.start("calls", 20, "calls"),
      ]);
      const results = await world.run(Promise.all(handles.map((handle) => handle.result())), 3_600_000);
      expect(results).toEqual([20, 90, 20]);
      // A session knows its calls: one that came by both ways runs once, and in order (a connection keeps it).
      expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i));
      for (const id of ["steps", "wide", "calls"]) checkHistory((await world.history(id)) ?? []);
      await world.clock.advance(120_000);
      expect(await waiting(world.names.inboxStream)).toBe(0);
      expect(await waiting(world.names.activitiesStream)).toBe(0);
    },
  );

  test("no worker at all: the task waits in the queue for the first", async () => {
    await open();
    await world.orchestrator();
    const handle = await world.start("steps", 2, "a");
    await world.clock.advance(5_000);
    expect(await waiting(world.names.activitiesStream)).toBe(1);
    await world.worker();
    expect(await world.run(handle.result())).toBe(2);
  });
});

describe("who dies with it", () => {
  test("the worker: its task goes to another within seconds, long before any acknowledgement wait", async () => {
    await open();
    await world.orchestrator();
    const first = await world.worker();
    const handle = await world.start("long-step", 3_000, "a");
    await untilRuns(1);
    const diedAt = world.clock.now();
    first.kill();
    await world.worker();
    await untilRuns(2);
    expect(world.clock.now() - diedAt).toBeLessThan(10_000);
    expect(await world.run(handle.result())).toBe(3_000);
    expect(world.happenings).toContainEqual(
      expect.objectContaining({ kind: "lane.recalled", instanceId: "a", workerId: first.id, why: "dead" }),
    );
  });

  test("the worker: what its task said last is known to the next run", async () => {
    await open();
    await world.orchestrator();
    const first = await world.worker();
    const handle = await world.start("resume", null, "a");
    await untilRuns(1);
    await world.clock.advance(1_500);
    first.kill();
    const second = await world.worker();
    expect(await world.run(handle.result(), 60_000)).toEqual({ at: 7 });
    expect(runs).toEqual([first.id, second.id]);
  });

  test("the orchestrator: the next one finds the task in its worker's hands and leaves it there", async () => {
    await open();
    const first = await world.orchestrator();
    const worker = await world.worker();
    const handle = await world.start("long-step", 20_000, "a");
    await untilRuns(1);
    first.kill();
    await world.orchestrator();
    expect(await world.run(handle.result(), 60_000)).toBe(20_000);
    expect(runs).toEqual([worker.id]);
    expect(world.count("lane.adopted")).toBe(1);
    checkHistory((await world.history("a")) ?? []);
    await world.clock.advance(100);
    expect(await waiting(world.names.inboxStream), "the adopted anchor is acknowledged").toBe(0);
  });

  test("both, in the middle of a wide fan-out: each task ends once in the history", async () => {
    await open();
    const orchestrator = await world.orchestrator();
    const worker = await world.worker();
    const handle = await world.start("wide-long", 150, "a");
    await untilRuns(50);
    orchestrator.kill();
    worker.kill();
    await world.orchestrator();
    await world.worker();
    expect(await world.run(handle.result(), 120_000)).toBe(150);
    checkHistory((await world.history("a")) ?? []);
    await world.clock.advance(120_000);
    expect(await waiting(world.names.inboxStream)).toBe(0);
    expect(await waiting(world.names.activitiesStream)).toBe(0);
  });

  test("both: the next orchestrator sends the task by the queue", async () => {
    await open();
    const orchestrator = await world.orchestrator();
    const worker = await world.worker();
    const handle = await world.start("long-step", 2_000, "a");
    await untilRuns(1);
    orchestrator.kill();
    worker.kill();
    await world.orchestrator();
    const second = await world.worker();
    expect(await world.run(handle.result(), 60_000)).toBe(2_000);
    expect(runs).toEqual([worker.id, second.id]);
    expect(stored(world.names.activitiesStream)).toBe(1);
  });

  test("first the orchestrator, later the worker: the one that adopted the task notices", async () => {
    await open();
    const orchestrator = await world.orchestrator();
    const worker = await world.worker();
    const handle = await world.start("long-step", 30_000, "a");
    await untilRuns(1);
    orchestrator.kill();
    await world.orchestrator();
    while (world.count("lane.adopted") === 0) await world.clock.advance(100);
    worker.kill();
    const second = await world.worker();
    expect(await world.run(handle.result(), 120_000)).toBe(30_000);
    expect(runs).toEqual([worker.id, second.id]);
  });

  test.each([21, 22, 23, 24, 25, 26, 27, 28])(
    "anybody, on a bad day: everything ends; seed %s",
    async (seed) => {
      await open(someFaults, { seed, alwaysReplay: seed % 2 === 0 });
      let orchestrator = await world.orchestrator();
      let worker = await world.worker();
      await world.watcher();
      const ids = ["s1", "s2", "s3", "l1", "l2", "c1"];
      const handles = [];
      for (const id of ids) {
        const [name, input] =
          id[0] === "s" ? ["steps", 10] : id[0] === "l" ? ["long-step", 2_500] : ["calls", 10];
        handles.push(await world.start(name as string, input, id));
      }
      for (let strike = 0; strike < 3; strike++) {
        await world.clock.advance(world.random.next() * 1_500);
        if (world.random.next() < 0.6) orchestrator.kill();
        if (world.random.next() < 0.6) worker.kill();
        orchestrator = await world.orchestrator();
        worker = await world.worker();
      }
      const results = await world.run(Promise.all(handles.map((handle) => handle.result())), 3_600_000);
      expect(results).toEqual([10, 10, 10, 2_500, 2_500, 10]);
      for (const id of ids) checkHistory((await world.history(id)) ?? []);
    },
  );
});

test("a worker that is drained in the middle gives its task back, and its owner sends it by the queue", async () => {
  await open();
  await world.orchestrator();
  const first = await world.worker();
  const handle = await world.start("long-step", 60_000, "a");
  await untilRuns(1);
  void first.stop();
  const second = await world.worker();
  await untilRuns(2);
  expect(runs).toEqual([first.id, second.id]);
  expect(await world.run(handle.result(), 600_000)).toBe(60_000);
  expect(world.happenings).toContainEqual(
    expect.objectContaining({ kind: "lane.recalled", instanceId: "a", why: "returned" }),
  );
});

test("the end of a session does not overtake the result of a call that finds the lane blocked", async () => {
  await open();
  await world.orchestrator();
  await world.watcher();
  const first = await world.worker();
  const handle = await world.start("long-call", 2_000, "a");
  await untilRuns(1);
  await world.clock.advance(100);
  world.broker.fate.faults = { ...noFaults, plainLost: 1 };
  void first.stop();
  expect(await world.run(handle.result(), 60_000)).toBe(2_000);
  expect(runs).toEqual(["work"]);
});

test("what a turn by the lane could not get out at first is sent all the same", async () => {
  await open();
  const { bus } = await world.orchestrator();
  await world.watcher();
  await world.worker();
  const publish = bus.publish.bind(bus);
  let refused = 0;
  bus.publish = (subject, body, options) => {
    // The last summary and the closing of the session, after the commit that ends the instance.
    const ends = subject.startsWith("$KV.instances.") && new TextDecoder().decode(body).includes("completed");
    if ((ends || subject.startsWith("$KV.sessions.")) && world.count("call.ended") === 4 && refused++ < 2)
      throw new Fault("transient", { code: "no_stream", message: "no leader" });
    return publish(subject, body, options);
  };
  const handle = await world.start("calls", 4, "a");
  expect(await world.run(handle.result(), 60_000)).toBe(4);
  expect(refused).toBeGreaterThanOrEqual(2);
  await world.clock.advance(5_000);
  expect(world.happenings).toContainEqual(
    expect.objectContaining({ kind: "session.detached", sessionId: "a-s1", why: "closed" }),
  );
});
