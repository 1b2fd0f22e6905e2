/** A member of a pool takes calls from the pool's queue, and every one of them is settled. */
import { beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { ActivityTask } from "../../../schemas/index.ts";
import { workerConfig } from "../../../services/worker/config.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import type { SharedCall } from "../../../services/worker/sessions/calls/call-queue.ts";
import { PoolFeed } from "../../../services/worker/sessions/pools/pool-feed.ts";
import { PoolGrowth } from "../../../services/worker/sessions/pools/pool-growth.ts";
import { defaultTiming, type SessionDeps } from "../../../services/worker/sessions/session-deps.ts";
import { workerSettings } from "../../../services/worker/settings.ts";
import { defaultTopology, encode, ensureTopology, Payloads, subjects } from "../../../shared/bus/index.ts";
import { call, collectApp, defineSession } from "../../../shared/definitions/index.ts";
import { type Happening, seededRandom, sleep } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, noFaults } from "../../../shared/testing/memory/index.ts";

const single = defineSession("single", { init: () => ({}), calls: { ask: call({ run: () => 0 }) } });
const batching = defineSession("batching", {
  concurrency: 2,
  init: () => ({}),
  calls: {
    ask: call({ run: () => 0 }),
    many: call({ batch: { maxSize: 4, maxDelay: 5 }, run: (_state, inputs) => inputs }),
  },
});
const names = subjects();

/** The calls of a member, in the test's hands. */
class HeldCalls {
  readonly lent = new Map<number, SharedCall>();
  readonly cancelled: number[] = [];
  answer: "taken" | "seen" | "ended" = "taken";
  waitMs = 0;
  lend(task: ActivityTask, loan: SharedCall) {
    if (this.answer === "taken") this.lent.set(task.of, loan);
    return this.answer;
  }
  cancel(task: { of: number }) {
    this.cancelled.push(task.of);
  }
  longestWaitMs() {
    return this.waitMs;
  }
}

class Rig {
  readonly clock = new SimulatedClock();
  readonly broker = new MemoryBroker({ clock: this.clock, seed: 1, faults: noFaults });
  readonly bus = this.broker.connect();
  readonly happenings: Happening[] = [];
  readonly over: PoolFeed[] = [];
  readonly covered = new Set<number>();
  readonly deps: SessionDeps;

  constructor() {
    const env = { WORKER_ACK_WAIT: "10s", WORKER_MAX_DELIVERIES: "3" };
    const config = workerConfig(z.object(workerSettings).parse(env));
    const runtime = {
      clock: this.clock,
      random: seededRandom(2),
      announce: (happening: Happening) => void this.happenings.push(happening),
    };
    this.deps = {
      ...{ bus: this.bus, names, runtime, config, app: collectApp({ single, batching }) },
      identity: createIdentity(config, { host: "h", pid: 1 }, seededRandom(3)),
      payloads: new Payloads(this.bus.blobs),
      loadChanged: () => undefined,
    } as unknown as SessionDeps;
  }

  run<T>(work: Promise<T>): Promise<T> {
    return this.clock.run(work);
  }

  async member(definition = single, calls = new HeldCalls()): Promise<{ feed: PoolFeed; calls: HeldCalls }> {
    const feed = new PoolFeed({
      ...{ deps: this.deps, timing: defaultTiming, poolId: "p" },
      ...{ definition, calls, onOver: (over: PoolFeed) => this.over.push(over) },
      cancels: { covers: (task) => this.covered.has(task.of) },
    });
    await this.clock.advance(50);
    return { feed, calls };
  }

  /** Calls of an instance, as its orchestrator publishes them. */
  async ask(ofs: number[], name = "ask", body?: Uint8Array, timeouts = {}): Promise<void> {
    for (const of of ofs) {
      const task = {
        ...{ v: 1, instanceId: "i1", execution: 1, of, attempt: 1, name: "ask", input: { json: of } },
        ...{ scheduledAt: 0, timeouts, reportStart: false },
      };
      const bytes = body ?? encode(ActivityTask.parse(task));
      await this.run(this.bus.publish(names.activity("pool-p", name), bytes));
    }
    await this.clock.advance(20);
  }

  async stored(): Promise<number> {
    return (await this.run(this.bus.streamInfo(names.activitiesStream)))?.messages ?? -1;
  }

  async said(): Promise<unknown[]> {
    const stored = (await this.run(this.bus.read(names.inboxStream, names.inboxOf("pool-p")))) ?? [];
    return stored.map(({ body }) => JSON.parse(new TextDecoder().decode(body)));
  }
}

let rig: Rig;
beforeEach(async () => {
  rig = new Rig();
  await rig.run(ensureTopology(rig.bus, names, defaultTopology));
});

const lent = ({ lent }: HeldCalls): number[] => [...lent.keys()];

describe("a member's share", () => {
  it("is one call at a time; the next comes when this one is settled, and it is gone for good", async () => {
    const { calls } = await rig.member();
    await rig.ask([1, 2, 3]);
    expect(lent(calls)).toEqual([1]);
    calls.lent.get(1)?.settle("done");
    await rig.clock.advance(20);
    expect(lent(calls)).toEqual([1, 2]);
    expect(await rig.stored()).toBe(2);
  });

  it("is not what expired while the pool had no members; what was in time, or may have begun, is", async () => {
    await rig.ask([1], "ask", undefined, { scheduleToCloseMs: 60_000 });
    await rig.ask([2], "ask", undefined, { scheduleToCloseMs: 180_000 });
    await rig.ask([3], "ask", undefined, { scheduleToStartMs: 60_000 });
    await rig.clock.advance(120_000);
    const { calls } = await rig.member();
    expect(lent(calls)).toEqual([2]);
    calls.lent.get(2)?.settle("done");
    await rig.clock.advance(20);
    expect(lent(calls)).toEqual([2, 3]);
    expect(await rig.stored()).toBe(1);
    const expired = rig.happenings.flatMap((one) => (one.kind === "activity.expired" ? [one.of] : []));
    expect(expired).toEqual([1]);
  });

  it("is as many as its runs take together, where calls batch", async () => {
    const { calls } = await rig.member(batching);
    await rig.ask(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(lent(calls)).toHaveLength(8);
  });

  it("leaves the rest to the others: whoever is free takes the next", async () => {
    const [a, b] = [await rig.member(), await rig.member()];
    await rig.ask([1, 2, 3]);
    expect([lent(a.calls), lent(b.calls)].flat().sort()).toEqual([1, 2]);
    b.calls.lent.get(lent(b.calls)[0] ?? 0)?.settle("done");
    await rig.clock.advance(20);
    expect(lent(b.calls)).toContain(3);
    expect(lent(a.calls)).toHaveLength(1);
  });

  it("is kept while it is held, however long that takes", async () => {
    const a = await rig.member();
    const b = await rig.member();
    await rig.ask([1]);
    const holder = lent(a.calls).length > 0 ? a : b;
    for (let i = 0; i < 10; i++) {
      holder.feed.stillAtIt();
      await rig.clock.advance(5000);
    }
    expect([lent(a.calls), lent(b.calls)].flat()).toEqual([1]);
  });
});

describe("what cannot be finished here", () => {
  it("goes to another at once when it is given back, with its count of deliveries", async () => {
    const { feed, calls } = await rig.member();
    await rig.ask([1]);
    const other = await rig.member();
    feed.stop();
    expect(rig.over).toEqual([]);
    calls.lent.get(1)?.settle("back");
    expect(rig.over).toEqual([feed]);
    await rig.clock.advance(20);
    expect(other.calls.lent.get(1)?.deliveries).toBe(2);
  });

  it("is settled once, whatever is said later", async () => {
    const { calls } = await rig.member();
    await rig.ask([1]);
    calls.lent.get(1)?.settle("done");
    calls.lent.get(1)?.settle("back");
    await rig.clock.advance(30_000);
    expect(lent(calls)).toEqual([1]);
    expect(await rig.stored()).toBe(0);
  });

  it("is not taken by a member whose calls are over", async () => {
    const calls = new HeldCalls();
    calls.answer = "ended";
    const { feed } = await rig.member(single, calls);
    await rig.ask([1]);
    expect(rig.over, "MEMBER-4").toEqual([feed]);
    const other = await rig.member();
    await rig.clock.advance(50);
    expect(other.calls.lent.get(1)?.deliveries).toBe(2);
  });
});

it("defect 10: is no nearer to poison after a member that stopped while it opened its queue (seed 901401)", async () => {
  rig.broker.fate.faults = { ...noFaults, latencyMs: [1, 1] };
  const consume = rig.bus.consume.bind(rig.bus);
  vi.spyOn(rig.bus, "consume").mockImplementationOnce(async (...all) => {
    const consumption = await consume(...all);
    await sleep(rig.clock, 100);
    return consumption;
  });
  const { feed, calls } = await rig.member();
  feed.stop();
  await rig.ask([1]);
  await rig.clock.advance(200);
  expect(lent(calls)).toEqual([]);
  const other = await rig.member();
  await rig.clock.advance(200);
  expect(lent(other.calls)).toEqual([1]);
  expect(other.calls.lent.get(1)?.deliveries, "given back once").toBe(2);
});

it("defect 10: is not poison, however many members gave it back when they left", async () => {
  await rig.ask([1]);
  for (let left = 0; left < 5; left++) {
    const { calls } = await rig.member();
    expect(lent(calls)).toEqual([1]);
    calls.lent.get(1)?.settle("back");
    await rig.clock.advance(20);
  }
  expect(lent((await rig.member()).calls)).toEqual([1]);
  expect(await rig.said()).toEqual([]);
});

describe("what comes twice", () => {
  it("is not run again while it is held, and the newest delivery is the one to settle", async () => {
    const { calls } = await rig.member();
    await rig.ask([1]);
    await rig.clock.advance(11_000); // for the server no worker has it
    expect(lent(calls)).toEqual([1]);
    calls.lent.get(1)?.settle("done");
    await rig.clock.advance(20);
    expect(await rig.stored()).toBe(0);
  });

  it("is acknowledged when it was answered before", async () => {
    const calls = new HeldCalls();
    calls.answer = "seen";
    await rig.member(single, calls);
    await rig.ask([1]);
    expect(await rig.stored()).toBe(0);
  });

  it("is not taken for answered where it was given back because the right to answer is over", async () => {
    const { calls } = await rig.member();
    await rig.ask([1]);
    calls.answer = "seen";
    calls.lent.get(1)?.settle("back");
    await rig.clock.advance(20);
    expect(await rig.stored()).toBe(1);
    expect((await rig.member()).calls.lent.get(1)?.deliveries).toBe(2);
  });
});

describe("what should not run", () => {
  it("is dropped when a notice says that nobody waits for it", async () => {
    const { feed, calls } = await rig.member();
    rig.covered.add(1);
    await rig.ask([1, 2]);
    expect(lent(calls)).toEqual([2]);
    feed.cancel(({ instanceId }) => instanceId === "i1");
    feed.cancel(({ instanceId }) => instanceId === "i2");
    expect(calls.cancelled).toEqual([2]);
  });

  it("is set aside where it cannot be read, or does not belong on its subject", async () => {
    const { calls } = await rig.member();
    await rig.ask([1], "ask", new TextEncoder().encode("{"));
    await rig.ask([2], "other");
    await rig.clock.advance(100);
    expect(lent(calls)).toEqual([]);
    expect(await rig.stored()).toBe(0);
    const codes = rig.happenings.flatMap((one) => (one.kind === "dead.lettered" ? [one.code] : []));
    expect(codes).toEqual(["invalid_task", "wrong_subject"]);
  });

  it("is reported as poison when nobody lived to answer it", async () => {
    for (let i = 0; i < 3; i++) {
      const bus = rig.broker.connect();
      const name = names.poolConsumer("p");
      await rig.run(
        bus.ensureConsumer({
          ...{ stream: names.activitiesStream, name, filter: names.poolTasks("p"), ackWaitMs: 1000 },
        }),
      );
      if (i === 0) await rig.ask([1]);
      await rig.run(bus.next(names.activitiesStream, name, { expiresMs: 5000 }));
      await rig.clock.advance(1500);
    }
    const { calls } = await rig.member();
    await rig.clock.advance(100);
    expect(lent(calls)).toEqual([]);
    const stored = (await rig.run(rig.bus.read(names.inboxStream, names.inboxOf("i1")))) ?? [];
    const [report] = stored.map(({ body }) => JSON.parse(new TextDecoder().decode(body)));
    expect(report).toMatchObject({ of: 1, result: { kind: "failed", error: { code: "poisoned" } } });
    expect(await rig.stored()).toBe(0);
  });
});

describe("asking for one more member", () => {
  it("is done when a call waited in the queue", async () => {
    const { calls } = await rig.member();
    await rig.ask([1]);
    expect(await rig.said()).toEqual([]);
    await rig.ask([2]);
    await rig.clock.advance(300);
    calls.lent.get(1)?.settle("done");
    await rig.clock.advance(50);
    expect(await rig.said()).toEqual([{ kind: "grow", waitedMs: expect.any(Number) }]);
  });

  it("is done while a long call runs and others wait in the queue", async () => {
    await rig.member();
    await rig.ask([1, 2]);
    await rig.clock.advance(400);
    expect(await rig.said()).toEqual([]);
    await rig.clock.advance(1200);
    expect(await rig.said()).toHaveLength(1);
  });

  it("is done while calls wait inside the member", async () => {
    const { calls } = await rig.member(batching);
    await rig.ask([1, 2]);
    calls.waitMs = 900;
    await rig.clock.advance(600);
    expect(await rig.said()).toEqual([{ kind: "grow", waitedMs: 900 }]);
  });

  it("is not done while nothing waits, nor by a member that stopped", async () => {
    const { feed } = await rig.member();
    await rig.ask([1]);
    await rig.clock.advance(5000);
    feed.stop();
    await rig.ask([2]);
    await rig.clock.advance(5000);
    expect(await rig.said()).toEqual([]);
  });

  it("grows rarer while it does not help, and is quick again after calls that did not wait", async () => {
    const clock = new SimulatedClock();
    const asked: number[] = [];
    const growth = new PoolGrowth(clock, () => asked.push(clock.monotonic()));
    const wait = async (ms: number, waitedMs: number) => {
      for (let passed = 0; passed < ms; passed += 100) {
        growth.waited(waitedMs);
        await clock.advance(100);
      }
    };
    await wait(16_000, 500);
    expect(asked).toEqual([0, 1000, 3000, 7000, 15_000]);
    await clock.advance(20_000);
    growth.waited(5);
    await wait(1500, 500);
    expect(asked.slice(5).map((at) => at - (asked[5] ?? 0))).toEqual([0, 1000]);
  });
});

it("takes up again when somebody deleted the consumer", async () => {
  const { calls } = await rig.member();
  await rig.run(rig.bus.deleteConsumer(names.activitiesStream, names.poolConsumer("p")));
  await rig.clock.advance(1000);
  await rig.ask([1]);
  expect(lent(calls)).toEqual([1]);
});
