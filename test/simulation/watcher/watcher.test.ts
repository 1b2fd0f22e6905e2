import { describe, expect, test } from "vitest";
import { SessionRecord, SessionReport } from "../../../schemas/index.ts";
import { defaultWatcherConfig, Watcher } from "../../../services/watcher/index.ts";
import {
  Bucket,
  decode,
  defaultTopology,
  encode,
  ensureTopology,
  leaseKeys,
  subjects,
} from "../../../shared/bus/index.ts";
import { LeaseKeeper, LeaseStore } from "../../../shared/leases/index.ts";
import { seededRandom, silent } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, type MemoryBus, someFaults } from "../../../shared/testing/memory/index.ts";

const ttlMs = 5000;
const names = subjects();
const histories = {
  exists: async () => false,
  archive: async () => undefined,
  look: async (instanceId: string) => ({
    instanceId,
    blobs: [],
    ownLastSeq: undefined,
    sharedLastSeq: undefined,
  }),
  remove: async () => undefined,
  forgetUnstarted: async () => true,
};

/** Owners that live, die, and come back after outages of the bus; watchers that come and go; then peace. */
async function run(seed: number) {
  const clock = new SimulatedClock();
  const broker = new MemoryBroker({ clock, seed, faults: someFaults });
  const random = seededRandom(seed);
  const dice = (chance: number) => random.next() < chance;
  const runtime = { clock, random, announce: silent };
  const calm = broker.connect();
  await clock.run(ensureTopology(calm, names, { ...defaultTopology, historyShards: 1 }));
  const register = new Bucket(calm, names.bucket("sessions"), { random });

  const write = async (sessionId: string, attachment: number) => {
    const now = clock.now();
    const record = {
      v: 1,
      sessionId,
      instanceId: `i-${sessionId}`,
      type: "bare",
      phase: "active",
      attachment,
      requires: { tags: [], resources: {} },
      metadata: {},
      openedAt: now,
      updatedAt: now,
      leaseTtlMs: ttlMs,
      owners: [],
    };
    const { kind } = await register.put(sessionId, encode(SessionRecord.parse(record)));
    // A session is registered before anybody can claim it.
    if (kind !== "written") throw new Error(`not registered: ${kind}`);
  };

  class Owner {
    attachment = 0;
    dead = false;
    readonly sessionId: string;
    readonly #bus = broker.connect();
    readonly #keeper = new LeaseKeeper({ bus: this.#bus, bucket: names.bucket("leases"), runtime, ttlMs });

    constructor(sessionId: string) {
      this.sessionId = sessionId;
      // S14: the state is still here, so is its owner.
      this.#keeper.onLost(() => void this.attach());
    }

    async attach(): Promise<void> {
      while (!this.dead) {
        const attachment = this.attachment + 1;
        try {
          await write(this.sessionId, attachment);
          const key = leaseKeys.session(this.sessionId, attachment);
          const outcome = await this.#keeper.claim(key, { v: 1, holder: this.sessionId });
          this.attachment = attachment;
          if (outcome.kind === "granted") return;
        } catch {
          await new Promise<void>((resolve) => clock.after(200, resolve)); // the bus is away: again
        }
      }
    }

    async die(): Promise<void> {
      this.dead = true;
      await this.#keeper.stop();
    }
  }

  const watchers: { watcher: Watcher; bus: MemoryBus }[] = [];
  const startWatcher = (id: string) => {
    const bus = broker.connect();
    const watcher = new Watcher({ id, bus, names, runtime, config: defaultWatcherConfig, histories });
    void watcher.start().catch(() => undefined); // killed while starting
    watchers.push({ watcher, bus });
  };
  startWatcher("w0");
  startWatcher("w1");
  const owners = Array.from({ length: 20 }, (_, i) => new Owner(`s${i}`));
  for (const owner of owners) void owner.attach();
  await clock.advance(3000);
  for (let step = 0; step < 40; step++) {
    const owner = owners[Math.floor(random.next() * owners.length)];
    if (owner && dice(0.3) && owner.attachment > 0) await owner.die();
    if (dice(0.1)) {
      const [killed] = watchers.splice(Math.floor(random.next() * watchers.length), 1);
      killed?.bus.kill();
      startWatcher(`w${step + 2}`);
    }
    if (broker.isUp && dice(0.05)) broker.stop();
    else if (dice(0.4)) broker.start();
    await clock.advance(random.next() * 1000);
  }
  broker.start();
  broker.fate.faults = { ...broker.fate.faults, publishLost: 0, publishUnanswered: 0, publishLate: 0 };
  await clock.advance(60_000);

  const leases = new LeaseStore(calm, names.bucket("leases"));
  const results = await Promise.all(
    owners.map(async ({ sessionId, attachment, dead }) => {
      const inbox = await clock.run(calm.read(names.inboxStream, names.inboxOf(`i-${sessionId}`)));
      const told = (inbox ?? []).map(({ body }) => {
        const report = decode(SessionReport, body);
        return report.kind === "ok" ? report.value.attachment : 0;
      });
      const held = await clock.run(
        Promise.all(told.map((of) => leases.look(leaseKeys.session(sessionId, of)))),
      );
      return { sessionId, attachment, dead, told, held: held.map(({ kind }) => kind) };
    }),
  );
  for (const { bus } of watchers) bus.kill();
  return { results, hits: broker.fate.hits };
}

describe("under faults of the bus and death of watchers, by seed", () => {
  test.each(Array.from({ length: 15 }, (_, i) => i + 1))(
    "seed %s: each death is told once, no living session is told dead",
    async (seed) => {
      const { results, hits } = await run(seed);
      for (const result of results) {
        const { attachment, dead, told, held } = result;
        const about = `seed ${seed}: ${JSON.stringify(result)}`;
        expect(new Set(told).size, about).toBe(told.length);
        expect(told.includes(attachment), about).toBe(dead);
        expect(held, about).not.toContain("held");
      }
      expect(results.some(({ dead }) => dead)).toBe(true);
      expect(hits.publishUnanswered).toBeGreaterThan(0);
    },
  );
});
