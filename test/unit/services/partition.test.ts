/** A partition is fed by one consumption at a time, whatever ends it, and by none once it is given up. */
import { expect, test } from "vitest";
import type { OrchestratorDeps } from "../../../services/orchestrator/deps.ts";
import { Partition } from "../../../services/orchestrator/partitions/partition.ts";
import { InstanceCache } from "../../../services/orchestrator/partitions/partition-instances.ts";
import { type Consumption, subjects } from "../../../shared/bus/index.ts";
import type { Leases } from "../../../shared/leases/index.ts";
import { systemClock, systemRandom } from "../../../shared/runtime/index.ts";

class Feeds {
  readonly opened: { alive: boolean; end: (how: "stopped" | "gone") => void }[] = [];

  get alive(): number {
    return this.opened.filter((feed) => feed.alive).length;
  }

  /** As a server does: the consumer is gone, and pulls on it end. */
  gone(): void {
    for (const feed of this.opened) feed.end("gone");
  }

  consume = async (): Promise<Consumption> => {
    await new Promise((resolve) => setImmediate(resolve));
    let end: (how: "stopped" | "gone") => void = () => undefined;
    const ended = new Promise<"stopped" | "gone">((resolve) => {
      end = resolve;
    });
    const feed = {
      alive: true,
      end: (how: "stopped" | "gone") => {
        feed.alive = false;
        end(how);
      },
    };
    this.opened.push(feed);
    return { ended, stop: async () => feed.end("stopped") };
  };
}

function partition(feeds: Feeds, isHeld = () => true): Partition {
  const bus = {
    deleteConsumer: async () => feeds.gone(),
    ensureConsumer: async () => undefined,
    consume: feeds.consume,
  };
  const runtime = { clock: systemClock, random: systemRandom, announce: () => undefined };
  // The rest is for turns, and none is taken here.
  const heldStarts = { drop: () => undefined };
  const deps = { id: "o", bus, names: subjects(), runtime, heldStarts } as unknown as OrchestratorDeps;
  const leases = { isHeld } as Partial<Leases> as Leases;
  return new Partition(deps, {
    ...{ partition: 1, lease: { key: "partition.1", epoch: 1, ttlMs: 5000 }, leases },
    ...{ cache: new InstanceCache(1), alwaysReplay: false, maxMessages: 1, maxUnacknowledged: 100 },
    onBroken: (_partition, error) => expect.unreachable(String(error)),
  });
}

const settled = async () => {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
};

test("a restarted server ends the consumer and the connection: it is opened anew, and once", async () => {
  const feeds = new Feeds();
  const served = partition(feeds);
  await served.start();
  feeds.gone();
  await served.refresh();
  await settled();
  expect(feeds.alive).toBe(1);
  await served.stop();
  await settled();
  expect(feeds.alive).toBe(0);
});

test.each([0, 1, 2, 3])(
  "given up in the middle of that, %i steps on: nothing is left open",
  async (steps) => {
    const feeds = new Feeds();
    const served = partition(feeds);
    await served.start();
    feeds.gone();
    void served.refresh();
    for (let i = 0; i < steps; i++) await new Promise((resolve) => setImmediate(resolve));
    await served.stop();
    await settled();
    expect(feeds.alive).toBe(0);
  },
);

test("given up while it is being taken: nothing is left open", async () => {
  const feeds = new Feeds();
  const served = partition(feeds);
  const started = served.start();
  await Promise.all([started, served.stop()]);
  await settled();
  expect(feeds.alive).toBe(0);
});

test("whoever holds it now made the consumer anew: it is left to them", async () => {
  const feeds = new Feeds();
  let held = true;
  const served = partition(feeds, () => held);
  await served.start();
  held = false;
  feeds.gone();
  await settled();
  expect(feeds.opened).toHaveLength(1);
  await served.stop();
});
