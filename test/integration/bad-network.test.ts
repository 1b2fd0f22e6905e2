/**
 * F24, F26, F27, F28: connections as bad as they come, on a real server. Nothing that was acknowledged is lost, what is not
 * answered is called unknown, and when the network is well again everything goes on by itself.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Bus, connectBus } from "../../shared/bus/index.ts";
import { seededRandom, silent } from "../../shared/runtime/index.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";
import { Network, type Weather } from "../support/nats/network.ts";
import { until } from "../support/processes/stack.ts";

let nats: TestNats;
let well: Bus;

beforeAll(async () => {
  // A client that does not read is cut off soon (F24).
  nats = await startNats({ extraConfig: 'write_deadline: "500ms"' });
  well = await connectBus({ url: nats.url, announce: silent });
});
afterAll(async () => {
  await well?.close();
  await nats?.stop();
});

interface Line extends AsyncDisposable {
  bus: Bus;
  network: Network;
  /** What arrived, each once, however often it came. */
  heard: Set<number>;
}

/** A member behind its own network, with a queue of its own that it reads. */
async function line(name: string): Promise<Line> {
  const network = await Network.start(nats.port, seededRandom(1));
  const bus = await connectBus({ url: network.url, announce: silent });
  await bus.ensureStream({ name, subjects: [`${name}.>`], retention: "workqueue" });
  await bus.ensureConsumer({ stream: name, name: "reader", filter: `${name}.>`, ackWaitMs: 1000 });
  const heard = new Set<number>();
  const consumption = await bus.consume(name, "reader", {
    maxMessages: 500,
    onMessage: (message) => {
      heard.add(Number(new TextDecoder().decode(message.body.subarray(0, 6))));
      message.ack();
    },
  });
  return {
    bus,
    network,
    heard,
    async [Symbol.asyncDispose]() {
      network.weather = { kind: "fair" };
      await consumption.stop();
      await bus.close();
      await network[Symbol.asyncDispose]();
    },
  };
}

const body = (n: number, size = 6): Uint8Array => {
  const bytes = new Uint8Array(size);
  bytes.set(new TextEncoder().encode(String(n).padStart(6, "0")));
  return bytes;
};

/** Sends until it is stored, as the engine does: an unknown outcome is asked again under the same id (BUS-1). */
async function surely(bus: Bus, subject: string, n: number): Promise<number> {
  for (let unknown = 0; ; unknown++) {
    const outcome = await bus.publish(subject, body(n), { msgId: `${subject}-${n}`, timeoutMs: 500 });
    if (outcome.kind === "stored") return unknown;
  }
}

test.concurrent.each<[string, string, Weather]>([
  ["F26: nothing arrives at the server", "TOSERVER", { kind: "silent", way: "to server" }],
  ["F26: nothing arrives from the server", "TOCLIENT", { kind: "silent", way: "to client" }],
  ["F27: a half-open connection", "HALFOPEN", { kind: "half-open" }],
])(
  "%s, and everything arrives once it is well",
  async (_what, name, weather) => {
    await using member = await line(name);
    await surely(member.bus, `${name}.x`, 1);
    member.network.weather = weather;
    // What the member says is unknown meanwhile, whether or not it was stored; what others say waits for it.
    const told = member.bus
      .publish(`${name}.x`, body(2), { msgId: `${name}.x-2`, timeoutMs: 500 })
      .catch(String);
    expect(await told).not.toMatchObject({ kind: "conflict" });
    for (let n = 3; n <= 20; n++) await surely(well, `${name}.x`, n);
    if (name !== "TOSERVER") expect(member.heard.has(20), "nothing came through").toBe(false);
    member.network.weather = { kind: "fair" };
    await surely(member.bus, `${name}.x`, 2);
    await until("all of them", () => member.heard.size === 20, 30_000);
    await until("acknowledged", async () => (await well.streamInfo(name))?.messages === 0, 30_000);
  },
  60_000,
);

test.concurrent("F28: 200 ms more or less, and 2 % resets", async () => {
  await using member = await line("SLOW");
  member.network.weather = { kind: "slow", ms: 200, jitterMs: 100, resets: 0.02 };
  await Promise.all(Array.from({ length: 100 }, (_, n) => surely(member.bus, "SLOW.x", n + 1)));
  const info = await well.streamInfo("SLOW");
  expect((info?.lastSeq ?? 0) - (info?.firstSeq ?? 0), "each is stored once").toBeLessThanOrEqual(100);
  await until("all of them", () => member.heard.size === 100, 40_000);
}, 60_000);

test.concurrent("F24: a client that is too slow is cut off, comes back and misses nothing", async () => {
  await using member = await line("TOOSLOW");
  await surely(member.bus, "TOOSLOW.x", 1);
  const cut = new Promise<void>((resolve) => {
    member.bus.onState(({ kind }) => void (kind === "reconnected" && resolve()));
  });
  member.network.weather = { kind: "silent", way: "to client" };
  // Far more than the buffers on the way hold.
  for (let n = 2; n <= 200; n++)
    await well.publish("TOOSLOW.x", body(n, 200_000), { msgId: `slow-${n}`, timeoutMs: 5_000 });
  const log = join(nats.dataDir, "nats-server.log");
  await until("the server has let it go", () => readFileSync(log, "utf8").includes("Slow Consumer"), 20_000);
  member.network.weather = { kind: "fair" };
  await until("all of them", () => member.heard.size === 200, 40_000);
  await cut;
}, 60_000);
