/**
 * F20, F21, F25: the store of NATS is full or damaged, or an operator deleted a stream. The error says so,
 * and nothing is lost.
 */
import { closeSync, openSync, readdirSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  type Bus,
  connectBus,
  ensureTopology,
  topology as streamsOf,
  subjects,
} from "../../shared/bus/index.ts";
import { silent } from "../../shared/runtime/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import { startCluster } from "../support/nats/nats-cluster.ts";
import { startNats } from "../support/nats/nats-server.ts";
import { until } from "../support/processes/stack.ts";

const names = subjects();
const topology = { partitions: 1, historyShards: 1, replicas: 1 };
const mb = 1024 * 1024;

test("F20: a full store refuses with what to do, and takes again when there is room", async () => {
  const limits = `accounts { A { jetstream { max_store: ${8 * mb} }, users: [ { user: a, password: a } ] } }
    no_auth_user: a`;
  await using nats = await startNats({ extraConfig: limits });
  const bus = await connectBus({ url: nats.url, announce: silent });
  const client = new Client({ bus, names });
  try {
    // Without those that ask for room of their own.
    for (const spec of streamsOf(names, topology))
      if (spec.maxBytes === undefined) await bus.ensureStream(spec);
    await client.start("any", 1, { id: "before" });
    await bus.ensureStream({ name: "FILLER", subjects: ["filler"], retention: "limits" });
    const fill = async (bytes: number) => {
      for (;;) await bus.publish("filler", new Uint8Array(bytes));
    };
    for (const bytes of [500_000, 10_000, 200, 1])
      await expect(fill(bytes)).rejects.toMatchObject({
        code: "storage_full",
        hint: expect.stringContaining("room"),
      });
    await expect(client.start("any", 1, { id: "meanwhile" })).rejects.toMatchObject({ code: "storage_full" });
    await bus.deleteStream("FILLER");
    await client.start("any", 1, { id: "meanwhile" });
    const inbox = await bus.read(names.inboxStream, ">");
    expect(inbox?.map(({ subject }) => names.inboxInstance(subject))).toEqual(["before", "meanwhile"]);
  } finally {
    await bus.close();
  }
});

test("F25: a stream that was deleted by mistake is named, and nothing is taken for stored", async () => {
  await using nats = await startNats();
  const bus = await connectBus({ url: nats.url, announce: silent });
  const client = new Client({ bus, names });
  try {
    await ensureTopology(bus, names, topology);
    await client.start("any", 1, { id: "before" });
    await bus.deleteStream(names.inboxStream);
    await expect(client.start("any", 1, { id: "after" })).rejects.toMatchObject({ code: "no_stream" });
    // The next service that starts creates it anew, and messages arrive from then on.
    await ensureTopology(bus, names, topology);
    await client.start("any", 1, { id: "after" });
    expect(await bus.read(names.inboxStream, names.inboxOf("after"))).toHaveLength(1);
  } finally {
    await bus.close();
  }
});

test("F21: a damaged block of one copy is made good from the others", async () => {
  const cluster = await startCluster();
  const [, , victim] = cluster.servers;
  const open = (url: string): Promise<Bus> => connectBus({ url, announce: silent });
  try {
    const bus = await open(cluster.urls[0] ?? "");
    const spec = { name: "SAFE", subjects: ["safe.>"], retention: "limits" as const, replicas: 3 };
    await until(
      "a stream of three copies",
      () =>
        bus.ensureStream(spec).then(
          () => true,
          () => false,
        ),
      30_000,
    );
    for (let n = 0; n < 50; n++) await bus.publish("safe.x", new TextEncoder().encode(`message ${n}`));
    if (!victim) throw new Error("no third server");
    await victim.kill();
    damage(victim.dataDir);
    await victim.restart();
    const isWhole = async () => {
      const info = await unlessAway(bus.streamInfo("SAFE"));
      return info !== undefined && info.degraded !== true;
    };
    await until("whole again", isWhole, 60_000);
    // Each replica returns all that was stored, and nothing else.
    for (const url of cluster.urls) {
      // A server that has just begun again does not answer for JetStream at once.
      const other = await until("an answer", () => unlessAway(open(url)), 60_000);
      const texts = async () =>
        (await other.read("SAFE", "safe.x"))?.map(({ body }) => new TextDecoder().decode(body));
      const wanted = Array.from({ length: 50 }, (_, n) => `message ${n}`);
      await until("all messages", async () => (await unlessAway(texts()))?.length === 50, 60_000);
      expect(await texts()).toEqual(wanted);
      await other.close();
    }
    await bus.close();
  } finally {
    await cluster.stop();
  }
}, 240_000);

/** Undefined while NATS does not answer. */
const unlessAway = <T>(asked: Promise<T>): Promise<T | undefined> => asked.catch(() => undefined);

/** Writes over the middle of the largest block of the stream. */
function damage(dataDir: string): void {
  const blocks = readdirSync(dataDir, { recursive: true, encoding: "utf8" })
    .filter((file) => file.includes("SAFE") && file.endsWith(".blk"))
    .map((file) => join(dataDir, file))
    .sort((a, b) => statSync(b).size - statSync(a).size);
  const [block] = blocks;
  if (!block) throw new Error(`no block of SAFE under ${dataDir}`);
  const file = openSync(block, "r+");
  writeSync(file, Buffer.alloc(200, 0xff), 0, 200, Math.floor(statSync(block).size / 2));
  closeSync(file);
}
