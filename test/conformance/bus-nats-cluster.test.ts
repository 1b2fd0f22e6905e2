/** Three servers of which one dies: what was asked of it is asked of its successor, and nothing is refused meanwhile. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Bus, connectBus, encode, ensureTopology, subjects } from "../../shared/bus/index.ts";
import { HistoryStore } from "../../shared/history/index.ts";
import { silent, sleep, systemClock, systemRuntime } from "../../shared/runtime/index.ts";
import { type NatsCluster, startCluster } from "../support/nats/nats-cluster.ts";

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

test("defect 23: nothing is refused when a leader dies, and no new stream waits for the server that is away", async () => {
  expect(bus.clustered()).toBe(true);
  const { inboxStream } = names;
  const leader = await until("INBOX has a leader", async () => (await bus.streamInfo(inboxStream))?.leader);
  const connected = bus.serverName();
  const infos = await Promise.all(
    cluster.servers.map(async (server) => {
      const probe = await connectBus({ url: server.url, announce: silent });
      const name = probe.serverName();
      await probe.close();
      return { server, name };
    }),
  );
  await infos.find(({ name }) => name === leader)?.server.kill();
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
  expect((await bus.streamInfo(inboxStream))?.messages).toBe(5);
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
