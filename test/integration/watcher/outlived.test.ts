/** WATCHER-8, with a real server that shows entries again which had ended before it was killed. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { isOutlived } from "../../../services/watcher/outlived.ts";
import { bucketStream, bucketSubject, leaseKeys } from "../../../shared/bus/index.ts";
import { LeaseStore } from "../../../shared/leases/index.ts";
import { until } from "../../support/processes/stack.ts";
import { WatcherWorld } from "../../support/worlds/watcher-world.ts";

let world: WatcherWorld;

beforeAll(async () => {
  world = await WatcherWorld.start();
});
afterAll(() => world?.stop());

const session = leaseKeys.session("closed", 1);
const seat = leaseKeys.seat("gpu", 1);
const watcherRole = leaseKeys.service("watcher");

test("leases and entries that a restarted server shows again, and never ends, are removed; seats stay", async () => {
  const { bus, nats } = world;
  const [leases, engine, workers, services] = (["leases", "engine", "workers", "services"] as const).map(
    (name) => world.names.bucket(name),
  ) as [string, string, string, string];
  const ended = [
    [leases, session],
    [engine, watcherRole],
    [engine, leaseKeys.partition(3)],
    [engine, leaseKeys.member("gone")],
    [workers, "gone"],
    [services, "orchestrator.gone"],
  ] as const;
  const write = (
    bucket: string,
    key: string,
    body: string,
    options: { ttlMs?: number; headers?: Record<string, string> },
  ) => bus.publish(bucketSubject(bucket, key), new TextEncoder().encode(body), options);
  const last = (bucket: string, key: string) =>
    bus.last(bucketStream(bucket), bucketSubject(bucket, key), { leader: true });
  const value = JSON.stringify({ v: 1, holder: "gone" });

  // Given entries that were removed in good order, and whose marks are over as well.
  await write(leases, seat, value, {});
  const buckets = [leases, engine, workers, services];
  for (const bucket of buckets) await write(bucket, "stays.1", value, { ttlMs: 3_600_000 });
  for (const [bucket, key] of ended) {
    await write(bucket, key, value, { ttlMs: 20_000 });
    await write(bucket, key, "", { ttlMs: 6_000, headers: { "KV-Operation": "PURGE" } });
  }
  // The server notes when entries end: not of those that have been replaced.
  await nats.restart();
  for (const [bucket, key] of ended)
    await until(`the mark of ${key} is over`, async () => (await last(bucket, key)) === undefined, 60_000);
  // When it is killed after further writes, then it shows them again.
  for (const bucket of buckets) await write(bucket, "stays.2", value, { ttlMs: 3_600_000 });
  await nats.kill();
  await nats.restart();
  const store = new LeaseStore(bus, leases);
  expect(await store.look(session)).toMatchObject({ kind: "held", holder: "gone" });
  for (const [bucket, key] of ended)
    expect((await last(bucket, key))?.body.length ?? 0, key).toBeGreaterThan(0);

  // A watcher removes them once their time is over, and only then can it act itself.
  await until("they are overdue", async () => isOutlivedNow(await last(engine, watcherRole)), 60_000);
  const { happenings, heard } = await world.watcher("a");
  await heard("retention.swept", ({ step }) => step === "outlived");
  for (const [bucket, key] of ended)
    if (key !== watcherRole) expect((await last(bucket, key))?.body.length ?? 0, key).toBe(0);
  expect(await store.look(session)).toMatchObject({ kind: "released" });
  await heard("watcher.acting");
  for (const key of [seat, "stays.1", "stays.2"])
    expect((await last(leases, key))?.body.length, key).toBeGreaterThan(0);
  expect(happenings.filter(({ kind }) => kind === "session.lost" || kind === "dead.lettered")).toEqual([]);

  async function isOutlivedNow(entry: Awaited<ReturnType<typeof last>>): Promise<boolean> {
    const now = (await bus.streamInfo(bucketStream(engine)))?.seenAt ?? 0;
    return entry !== undefined && isOutlived(entry, now);
  }
}, 180_000);
