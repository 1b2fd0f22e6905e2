/** Three servers of which one dies or is cut off: what was asked of it is asked of its successor, and nothing is refused. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Bus,
  connectBus,
  encode,
  ensureTopology,
  type PublishOutcome,
  subjects,
} from "../../shared/bus/index.ts";
import { HistoryStore } from "../../shared/history/index.ts";
import { silent, sleep, systemClock, systemRuntime } from "../../shared/runtime/index.ts";
import { type NatsCluster, startCluster } from "../support/nats/nats-cluster.ts";
import type { TestNats } from "../support/nats/nats-server.ts";

const names = subjects();
let cluster: NatsCluster;
let bus: Bus;

async function until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const found = await look().catch(() => undefined); // no leader yet
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`not so within a minute: ${what}`);
    await sleep(systemClock, 100);
  }
}

async function leaderOf(stream: string): Promise<TestNats> {
  const leader = await until(`${stream} has a leader`, async () => (await bus.streamInfo(stream))?.leader);
  for (const server of cluster.servers) {
    const probe = await connectBus({ url: server.url, announce: silent });
    const name = probe.serverName();
    await probe.close();
    if (name === leader) return server;
  }
  throw new Error(`no server is called ${leader}`);
}

/** Without an error where nobody leads the stream for a moment. */
const published = (by: Bus, subject: string, msgId: string) =>
  by
    .publish(subject, encode(msgId), { msgId, timeoutMs: 2_000 })
    .catch((): PublishOutcome => ({ kind: "unknown" }));

beforeAll(async () => {
  cluster = await startCluster();
  bus = await until("the cluster has a leader and all streams", async () => {
    const opened = await connectBus({ url: cluster.urls, announce: silent });
    try {
      await ensureTopology(opened, names, { partitions: 2, historyShards: 2, replicas: 3 });
      return opened;
    } catch (error) {
      await opened.close();
      throw error;
    }
  });
}, 120_000);
afterAll(async () => {
  await bus?.close();
  await cluster?.stop();
});

/** A test that is tried again meets other messages. */
let tries = 0;

test("F22: a leader cut off from the others stores nothing alone, and what the others store meanwhile stays", async () => {
  const { inboxStream } = names;
  const id = `cut${++tries}`;
  const subject = names.signal(id, "go");
  const leader = await leaderOf(inboxStream);
  const others = cluster.servers.filter((server) => server !== leader);
  const near = await connectBus({ url: leader.url, announce: silent });
  const far = await connectBus({ url: others.map(({ url }) => url), announce: silent });
  try {
    cluster.cutOff(leader);
    expect(await published(near, subject, `near-${id}`)).toEqual({ kind: "unknown" });
    await until("the others have a leader of their own", async () => {
      return (await published(far, subject, `far-${id}`)).kind === "stored";
    });
    cluster.join(leader);
    for (const [by, msgId] of [
      [near, `near-${id}`],
      [near, `far-${id}`],
      [far, `near-${id}`],
    ] as const)
      await until(`an answer about ${msgId}`, async () => {
        return (await published(by, subject, msgId)).kind === "stored";
      });
    const stored = await until("a copy that has all of them", async () => {
      const read = await far.read(inboxStream, names.inboxOf(id));
      return read && read.length >= 2 ? read : undefined;
    });
    const ids = stored.map(({ body }) => JSON.parse(new TextDecoder().decode(body)));
    expect(ids.sort()).toEqual([`far-${id}`, `near-${id}`]);
  } finally {
    cluster.join(leader);
    await near.close();
    await far.close();
  }
}, 180_000);

test("defect 23: nothing is refused when a leader dies, and no new stream waits for the server that is away", async () => {
  expect(bus.clustered()).toBe(true);
  const { inboxStream } = names;
  const connected = bus.serverName();
  await (await leaderOf(inboxStream)).kill();
  // Asked while the stream has no leader: each is answered, and stored once.
  const stored = await Promise.all(
    Array.from({ length: 5 }, async (_, n) => {
      for (;;) {
        try {
          const outcome = await bus.publish(names.signal("i1", "go"), encode(n), { msgId: `m${n}` });
          if (outcome.kind === "stored") return outcome.seq;
        } catch (error) {
          expect(error).toMatchObject({ code: "no_stream" }); // the election took longer than one try
        }
      }
    }),
  );
  expect(new Set(stored).size).toBe(5);
  expect(await bus.read(inboxStream, names.inboxOf("i1"))).toHaveLength(5);
  await until("the copies know that one is away", async () => {
    return (await bus.streamInfo(names.sharedHistoryStream(0)))?.degraded;
  });
  const runtime = systemRuntime();
  const store = new HistoryStore({
    ...{ bus, names, runtime, layout: "per-instance", maxOwnStreams: 100, shards: 2, replicas: 3 },
  });
  const position = await until("a place", () => store.place("i2"));
  expect(position.stream, `client on ${connected}`).toMatch(/^HISTORY_/);
}, 180_000);
