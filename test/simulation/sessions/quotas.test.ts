/** Quotas of the whole installation under a bus that loses, delays and does not answer, with workers that die anywhere. */
import { describe, expect, test } from "vitest";
import { InstanceId, Name, SessionId } from "../../../schemas/index.ts";
import type { WorkerIdentity } from "../../../services/worker/identity.ts";
import { Quotas, type Seats } from "../../../services/worker/sessions/quotas/quotas.ts";
import {
  Bucket,
  bucketStream,
  bucketSubject,
  defaultTopology,
  ensureTopology,
  leaseKeys,
  subjects,
} from "../../../shared/bus/index.ts";
import { type Lease, LeaseKeeper, LeaseStore } from "../../../shared/leases/index.ts";
import { type Random, seededRandom, silent } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import {
  type BusFaults,
  MemoryBroker,
  type MemoryBus,
  noFaults,
  someFaults,
} from "../../../shared/testing/memory/index.ts";

const ttlMs = 2000;
const max = 3;
const most = 4;
/** A publish of the twin that is late comes within two of its timeouts, of 2 s at most. */
const latestMs = 4000;
const types = ["a", "b"].map((type) => Name.parse(type));
const names = subjects();
const bucket = names.bucket("leases");

function pick<T>(from: readonly T[], random: Random): T {
  const one = from[Math.floor(random.next() * from.length)];
  if (one === undefined) throw new Error("nothing to pick from");
  return one;
}

interface Held {
  type: string;
  lease: Lease;
  seats: Seats;
}

async function world(seed: number, faults: BusFaults) {
  const clock = new SimulatedClock();
  const broker = new MemoryBroker({ clock, seed, faults });
  await clock.run(ensureTopology(broker.connect(), names, { ...defaultTopology, historyShards: 1 }));
  const random = seededRandom(seed);
  const runtime = { clock, random, announce: silent };
  const workers = new Set<TestWorker>();
  let serial = 0;

  class TestWorker {
    readonly bus: MemoryBus = broker.connect();
    readonly name = `w${++serial}`;
    readonly held: Held[] = [];
    readonly leases = new LeaseKeeper({ bus: this.bus, bucket, runtime, ttlMs });
    readonly quotas: Quotas;
    rooms = 0;
    dead = false;

    constructor() {
      const identity: Pick<WorkerIdentity, "workerId"> = {
        workerId: this.name as WorkerIdentity["workerId"],
      };
      const deps = { bus: this.bus, names, runtime, identity, loadChanged: () => undefined };
      const limits = { types: new Map(types.map((type) => [type, max])), all: most };
      this.quotas = new Quotas(deps, { restMaxMs: 1000 }, limits);
      this.quotas.onRoom(() => this.rooms++);
      workers.add(this);
    }

    /** As the taker does. True where it holds the session afterwards. */
    async take(type = pick(types, random)): Promise<boolean> {
      const sessionId = SessionId.parse(`s${++serial}`);
      const claim = { type, instanceId: InstanceId.parse("i"), sessionId, attachment: 1 };
      if ((await this.quotas.reached(claim)) !== undefined || this.dead) return false;
      const seated = await this.quotas.take(claim, ttlMs);
      if (seated.kind === "reached" || this.dead) return false;
      const { seats } = seated;
      const session = { instanceId: claim.instanceId, sessionId, attachment: 1 };
      const key = leaseKeys.session(sessionId, 1);
      const outcome = await this.leases.claim(key, { v: 1, holder: this.name, session }, ttlMs);
      if (this.dead || outcome.kind === "taken") return false;
      if (!(await seats.stillOurs())) {
        await this.leases.release(outcome.lease);
        return false;
      }
      if (this.dead) return false;
      this.held.push({ type, lease: outcome.lease, seats });
      return true;
    }

    async letGo(): Promise<void> {
      const one = this.held.shift();
      if (one && (await this.leases.release(one.lease)) === "released" && !this.dead)
        await one.seats.giveBack();
    }

    acting(): Held[] {
      return this.dead ? [] : this.held.filter(({ lease }) => this.leases.isHeld(lease));
    }

    /** Whatever it was doing ends here. */
    async die(): Promise<void> {
      this.dead = true;
      workers.delete(this);
      this.bus.kill();
      await Promise.all([this.leases.stop(), this.quotas.stop()]);
    }
  }

  const check = () => {
    const acting = [...workers].flatMap((worker) => worker.acting());
    for (const type of types) {
      expect(acting.filter((one) => one.type === type).length).toBeLessThanOrEqual(max);
    }
    expect(acting.length).toBeLessThanOrEqual(most);
    return acting.length;
  };
  const started = async () => {
    const worker = new TestWorker();
    await clock.run(worker.quotas.start());
    return worker;
  };
  return { clock, broker, random, workers, check, started };
}

describe("quotas on a bus that fails", () => {
  const faults = { ...someFaults, publishLost: 0.05, publishUnanswered: 0.1 };
  const seeds = Array.from({ length: 40 }, (_, i) => 7000 + i);
  test.each(seeds)("seed %i: never more act than allowed, and no seat is lost", async (seed) => {
    const { clock, broker, random, workers, check, started } = await world(seed, faults);
    for (let i = 0; i < 5; i++) await started();
    let top = 0;
    const step = async () => {
      const worker = pick([...workers], random);
      const dice = random.next();
      if (dice < 0.6) void worker.take().catch(() => false);
      else if (dice < 0.9) void worker.letGo().catch(() => undefined);
      else if (dice < 0.94) worker.bus.disconnect();
      else if (dice < 0.97) {
        await clock.run(worker.die());
        await started();
      }
      for (const one of workers) if (random.next() < 0.3) one.bus.reconnect();
      await clock.advance(random.next() * 300);
      top = Math.max(top, check());
    };
    for (let i = 0; i < 120; i++) await step();
    expect(top).toBeGreaterThan(1);
    // A lease stored late, after its claimer died, lives its whole TTL from then on: the last of them are in by now.
    broker.fate.faults = { ...faults, publishLate: 0 };
    const lateUntil = clock.monotonic() + latestMs;
    while (clock.monotonic() < lateUntil) await step();
    // All die, in the middle of whatever they do: within a TTL, and the time an expiry takes to be noted, all is free.
    broker.fate.faults = noFaults;
    for (const worker of [...workers]) await clock.run(worker.die());
    await clock.advance(ttlMs + 500);
    const last = await started();
    const [type = Name.parse("a"), other = Name.parse("b")] = types;
    for (let i = 0; i < max; i++) expect(await clock.run(last.take(type)), `seat ${i} of ${type}`).toBe(true);
    expect(await clock.run(last.take(type))).toBe(false);
    expect(await clock.run(last.take(other))).toBe(true);
    expect(await clock.run(last.take(other))).toBe(false);
    expect(check()).toBe(most);
  });
});

describe("one seat", () => {
  const setUp = async () => {
    const made = await world(1, noFaults);
    const bus = made.broker.connect();
    const taken = async () => {
      const seats: string[] = [];
      for await (const { key } of new Bucket(bus, bucket).entries(leaseKeys.allSeats)) seats.push(key);
      return seats.length;
    };
    return { ...made, bus, taken };
  };
  const [type = Name.parse("a")] = types;

  test("is given back with the session, and whoever waits is told at once", async () => {
    const { clock, started, taken } = await setUp();
    const [one, two] = [await started(), await started()];
    for (let i = 0; i < max; i++) expect(await clock.run(one.take(type))).toBe(true);
    await clock.advance(10);
    expect(await clock.run(two.take(type))).toBe(false);
    expect(await clock.run(taken())).toBe(2 * max);
    expect(two.rooms).toBe(0);
    await clock.run(one.letGo());
    await clock.advance(10);
    expect(two.rooms).toBe(1);
    expect(await clock.run(taken())).toBe(2 * (max - 1));
    expect(await clock.run(two.take(type))).toBe(true);
  });

  test("of a dead holder stays taken until its lease is over, and is then cleared for who waits", async () => {
    const { clock, started, bus, taken } = await setUp();
    const [one, two] = [await started(), await started()];
    for (let i = 0; i < max; i++) await clock.run(one.take(type));
    const leases = one.held.map(({ lease }) => lease.key);
    await clock.run(one.die());
    const store = new LeaseStore(bus, bucket);
    const holding = async () => {
      const looks = await Promise.all(leases.map((key) => store.look(key)));
      return looks.filter(({ kind }) => kind === "held").length;
    };
    expect(await clock.run(two.take(type))).toBe(false);
    for (let waited = 0; two.rooms === 0; waited += 50) {
      expect(waited, "waited for a seat").toBeLessThan(ttlMs + 700);
      expect(await clock.run(taken())).toBeGreaterThanOrEqual(2 * (await clock.run(holding())));
      // A claim that waits is looked at again every second.
      if (waited % 1000 === 0) expect(await clock.run(two.take(type))).toBe(false);
      await clock.advance(50);
    }
    expect(await clock.run(two.take(type))).toBe(true);
  });

  test("whose lease never came is left alone for one TTL (QUOTA-3)", async () => {
    const { clock, started } = await setUp();
    const one = await started();
    const ids = Array.from({ length: max }, (_, i) => SessionId.parse(`never-${i}`));
    const claims = ids.map((sessionId) => ({
      type,
      instanceId: InstanceId.parse("i"),
      sessionId,
      attachment: 1,
    }));
    const seated = await clock.run(Promise.all(claims.map((claim) => one.quotas.take(claim, ttlMs))));
    await clock.advance(ttlMs - 300);
    // A worker that has just started and cannot know since when.
    const two = await started();
    expect(await clock.run(two.take(type))).toBe(false);
    await clock.advance(600);
    for (let i = 0; i < max; i++) expect(await clock.run(two.take(type))).toBe(true);
    for (const one of seated)
      expect(one.kind === "seated" && (await clock.run(one.seats.stillOurs()))).toBe(false);
  });

  test("whose lease never came is cleared by the worker that took it, if nobody else is there", async () => {
    const { clock, started } = await setUp();
    const one = await started();
    const ids = Array.from({ length: max }, (_, i) => SessionId.parse(`gone-${i}`));
    for (const sessionId of ids) {
      const claim = { type, instanceId: InstanceId.parse("i"), sessionId, attachment: 1 };
      await clock.run(one.quotas.take(claim, ttlMs));
    }
    expect(await clock.run(one.take(type))).toBe(false);
    await clock.advance(ttlMs + 200);
    for (let i = 0; i < max; i++) expect(await clock.run(one.take(type))).toBe(true);
  });

  test("is made sure of where the lease was long in coming and nobody wanted it", async () => {
    const { clock, started } = await setUp();
    const one = await started();
    const claim = {
      type,
      instanceId: InstanceId.parse("i"),
      sessionId: SessionId.parse("slow"),
      attachment: 1,
    };
    const seated = await clock.run(one.quotas.take(claim, ttlMs));
    await clock.advance(2 * ttlMs);
    expect(seated.kind === "seated" && (await clock.run(seated.seats.stillOurs()))).toBe(true);
  });

  test("of a worker that lost the race for the session, and died before it gave the seat back, is free", async () => {
    const { clock, started, bus } = await setUp();
    const [one, two, three] = [await started(), await started(), await started()];
    const session = { instanceId: InstanceId.parse("i"), sessionId: SessionId.parse("raced"), attachment: 1 };
    await clock.run(one.quotas.take({ type, ...session }, ttlMs));
    await clock.run(two.quotas.take({ type, ...session }, ttlMs));
    await clock.run(
      one.leases.claim(leaseKeys.session("raced", 1), { v: 1, holder: one.name, session }, ttlMs),
    );
    await clock.run(two.die());
    await clock.advance(ttlMs);
    for (let i = 1; i < max; i++) expect(await clock.run(three.take(type))).toBe(true);
    expect(await clock.run(three.take(type))).toBe(false);
    expect(
      (await clock.run(bus.last(bucketStream(bucket), bucketSubject(bucket, "session.raced.1"))))?.body
        .length,
    ).toBeGreaterThan(0);
  });

  test("follows its session to the next attachment (S14)", async () => {
    const { clock, started, taken } = await setUp();
    const one = await started();
    const session = { instanceId: InstanceId.parse("i"), sessionId: SessionId.parse("again") };
    for (const attachment of [1, 2]) {
      await clock.run(one.quotas.take({ type, ...session, attachment }, ttlMs));
      expect(await clock.run(taken())).toBe(2);
    }
  });

  test("above a lowered quota counts until it is given back", async () => {
    const { clock, started, bus } = await setUp();
    const one = await started();
    for (let i = 0; i < max; i++) await clock.run(one.take(type));
    const identity: Pick<WorkerIdentity, "workerId"> = { workerId: "w-new" as WorkerIdentity["workerId"] };
    const runtime = { clock, random: seededRandom(2), announce: silent };
    const deps = { bus, names, runtime, identity, loadChanged: () => undefined };
    const limits = { types: new Map([[type as string, 2]]), all: undefined };
    const quotas = new Quotas(deps, { restMaxMs: 1000 }, limits);
    await clock.run(quotas.start());
    const claim = {
      type,
      instanceId: InstanceId.parse("i"),
      sessionId: SessionId.parse("new"),
      attachment: 1,
    };
    expect(await clock.run(quotas.reached(claim))).toContain("type a is at 3 of 2");
    await clock.run(one.letGo());
    await clock.advance(10);
    expect(await clock.run(quotas.reached(claim))).toContain("type a is at 2 of 2");
    await clock.run(one.letGo());
    await clock.advance(10);
    expect(await clock.run(quotas.reached(claim))).toBeUndefined();
  });
});
