import { describe, expect, test } from "vitest";
import {
  bucketStream,
  bucketSubject,
  defaultTopology,
  ensureTopology,
  subjects,
} from "../../../shared/bus/index.ts";
import { type Lease, LeaseKeeper, type LossWhy, readLease } from "../../../shared/leases/index.ts";
import { seededRandom, silent } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, type MemoryBus, someFaults } from "../../../shared/testing/memory/index.ts";

/** A holder of `key` under `epoch` considered itself the holder from `from` to `to`. */
interface Tenure {
  key: string;
  epoch: number;
  from: number;
  to: number;
}

const ttlMs = 3000;
const keys = ["partition.0", "partition.1", "partition.2"];

/**
 * Claimers that take what they can get, keep it for a while and then let go in every way there is: released, cut off,
 * paused, gone. What each believed to hold, and when, is written down.
 */
async function run(seed: number) {
  const clock = new SimulatedClock();
  const broker = new MemoryBroker({
    clock,
    seed,
    faults: { ...someFaults, publishLost: 0.05, publishUnanswered: 0.1 },
  });
  const names = subjects();
  await clock.run(ensureTopology(broker.connect(), names, { ...defaultTopology, historyShards: 1 }));
  const random = seededRandom(seed);
  const dice = (chance: number) => random.next() < chance;
  const tenures: Tenure[] = [];
  const whys: LossWhy[] = [];

  class Claimer {
    readonly #bus: MemoryBus = broker.connect();
    readonly #open = new Map<Lease, Tenure>();
    readonly #keeper = new LeaseKeeper({
      bus: this.#bus,
      bucket: names.bucket("leases"),
      runtime: { clock, random, announce: silent },
      ttlMs,
    });
    readonly #name: string;

    constructor(name: string) {
      this.#name = name;
      this.#keeper.onLost((lease, why) => {
        whys.push(why);
        this.#end(lease);
      });
    }

    async act(): Promise<void> {
      this.#look();
      if (dice(0.1)) return this.#bus.disconnect();
      if (dice(0.5)) this.#bus.reconnect();
      const held = this.#keeper.held();
      if (held.length > 0 && dice(0.2)) {
        const [lease] = held;
        if (!lease) return;
        this.#end(lease);
        await this.#keeper.release(lease);
        return;
      }
      const key = keys[Math.floor(random.next() * keys.length)] ?? "partition.0";
      const outcome = await this.#keeper.claim(key, { v: 1, holder: this.#name }).catch(() => undefined);
      if (outcome?.kind !== "granted") return;
      const { epoch } = outcome.lease;
      const now = clock.monotonic();
      this.#open.set(outcome.lease, { key, epoch, from: now, to: now });
      this.#look();
    }

    /** A holder is one that would act now. */
    #look(): void {
      for (const [lease, tenure] of this.#open) if (this.#keeper.isHeld(lease)) tenure.to = clock.monotonic();
    }

    look = () => this.#look();

    #end(lease: Lease): void {
      const tenure = this.#open.get(lease);
      if (tenure) tenures.push(tenure);
      this.#open.delete(lease);
    }

    async stop(): Promise<void> {
      for (const lease of this.#open.keys()) this.#end(lease);
      await this.#keeper.stop();
    }
  }

  const claimers = ["a", "b", "c", "d"].map((name) => new Claimer(name));
  const watch = () => {
    for (const claimer of claimers) claimer.look();
    clock.after(20, watch);
  };
  watch();
  for (let step = 0; step < 120; step++) {
    for (const claimer of claimers) void claimer.act();
    if (dice(0.02)) broker.stop();
    if (dice(0.3)) broker.start();
    await clock.advance(random.next() * 800);
  }
  broker.start();
  for (const claimer of claimers) await claimer.stop();
  await clock.advance(4 * ttlMs);
  const bucket = names.bucket("leases");
  const reader = broker.connect();
  const left = await Promise.all(
    keys.map((key) => clock.run(reader.last(bucketStream(bucket), bucketSubject(bucket, key)))),
  );
  return { tenures, whys, hits: broker.fate.hits, left };
}

describe("under faults of the bus, by seed", () => {
  test.each(Array.from({ length: 40 }, (_, i) => i + 1))(
    "seed %s: one holder at a time, epochs grow",
    async (seed) => {
      const { tenures, left } = await run(seed);
      expect(tenures.length).toBeGreaterThan(5);
      for (const key of keys) {
        const ofKey = tenures.filter((tenure) => tenure.key === key).sort((a, b) => a.from - b.from);
        for (const [i, tenure] of ofKey.entries()) {
          const before = ofKey[i - 1];
          if (!before) continue;
          expect(tenure.from, `seed ${seed}: ${key} ${JSON.stringify([before, tenure])}`).toBeGreaterThan(
            before.to,
          );
          expect(tenure.epoch).toBeGreaterThan(before.epoch);
        }
      }
      for (const message of left) if (message) expect(readLease(message).kind).not.toBe("held");
    },
  );

  test("the rare branches were really taken (I18)", async () => {
    const runs = await Promise.all([101, 102, 103].map(run));
    const whys = new Set(runs.flatMap(({ whys }) => whys));
    expect(whys).toContain("expired");
    for (const { hits } of runs) {
      expect(hits.publishUnanswered).toBeGreaterThan(0);
      expect(hits.publishLost).toBeGreaterThan(0);
      expect(hits.publishLate).toBeGreaterThan(0);
    }
  });
});
