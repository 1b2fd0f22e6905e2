/** What only a real server can show: death in the middle of things, a pause, and other people's clients. */

import { jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  Bucket,
  type BucketEvent,
  type Bus,
  connectBus,
  type PublishOutcome,
} from "../../shared/bus/index.ts";
import { silent, systemClock } from "../../shared/runtime/index.ts";
import { blobKeys } from "../support/nats/blob-keys.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";
import { bytes, fresh, Inbox, limits, text, until, workQueue } from "./rig.ts";

let server: TestNats;
let bus: Bus;
beforeAll(async () => {
  server = await startNats();
  bus = await connectBus({ url: server.url, announce: silent });
});
afterAll(async () => {
  await bus.close();
  await server.stop();
});

describe("SIGTERM", () => {
  it("never shows a stream as missing that only its server has closed already", async () => {
    const streams = Array.from({ length: 300 }, () => fresh("LM"));
    for (const stream of streams) {
      await bus.ensureStream(limits(stream));
      await bus.publish(`${stream}.a`, bytes("here"));
    }
    const missing: string[] = [];
    let asked = 0;
    let over = false;
    const reader = async (read: (stream: string) => Promise<unknown>) => {
      while (!over) {
        const stream = streams[asked++ % streams.length] ?? "";
        if ((await read(stream)) === undefined) missing.push(stream);
      }
    };
    const reading = Promise.all([
      ...Array.from({ length: 10 }, () => reader((stream) => bus.last(stream, `${stream}.a`))),
      ...Array.from({ length: 10 }, () => reader((stream) => bus.read(stream, `${stream}.a`))),
    ]);
    for (let stop = 0; stop < 3; stop++) {
      const before = asked;
      await until(systemClock, () => asked > before + 300);
      await server.restart();
    }
    over = true;
    await reading;
    expect(missing).toEqual([]);
  }, 60_000);
});

describe("kill -9", () => {
  it("loses nothing that was answered, and answers everything", async () => {
    const stream = fresh("LM");
    await bus.ensureStream(limits(stream));
    const outcomes = new Map<number, PublishOutcome>();
    let next = 0;
    const publisher = async () => {
      while (next < 6_000) {
        const n = next++;
        const subject = `${stream}.${n}`;
        outcomes.set(n, await bus.publish(subject, bytes(`${n}`), { expectLastSeq: 0, timeoutMs: 3_000 }));
      }
    };
    const publishing = Promise.all(Array.from({ length: 100 }, publisher));
    for (const at of [1_000, 3_000]) {
      await until(systemClock, () => next > at);
      await server.kill();
      await server.restart();
    }
    await publishing;
    const stored = new Set((await bus.read(stream, `${stream}.>`))?.map((message) => text(message.body)));
    const kinds = { stored: 0, unknown: 0, conflict: 0 };
    for (const [n, outcome] of outcomes) {
      kinds[outcome.kind]++;
      if (outcome.kind === "stored") expect(stored.has(`${n}`)).toBe(true);
    }
    expect(outcomes.size).toBe(6_000);
    expect(kinds.conflict).toBe(0);
    expect(kinds.unknown).toBeGreaterThan(0); // otherwise the kills proved nothing
  });

  it("lets an idle consumption and an idle view go on, long before a heartbeat is missed", async () => {
    const queue = fresh("WQ");
    const log = fresh("LM");
    await bus.ensureStream(workQueue(queue));
    await bus.ensureStream(limits(log));
    await bus.ensureConsumer({ stream: queue, name: "c", filter: `${queue}.>`, ackWaitMs: 30_000 });
    const inbox = new Inbox({ ack: true });
    const consumption = await bus.consume(queue, "c", { maxMessages: 5, onMessage: inbox.onMessage });
    const seen: string[] = [];
    const view = await bus.tail(log, `${log}.>`, {
      existing: false,
      onMessage: (message) => seen.push(text(message.body)),
    });
    for (let round = 1; round <= 3; round++) {
      await server.kill();
      await server.restart();
      await until(systemClock, () => bus.connected());
      for (const stream of [queue, log]) {
        expect(await bus.publish(`${stream}.a`, bytes(`${round}`))).toMatchObject({ kind: "stored" });
      }
      await until(systemClock, () => inbox.texts.includes(`${round}`) && seen.length === round);
    }
    // An acknowledgement may have died with the server: then it comes again.
    expect([...new Set(inbox.texts)]).toEqual(["1", "2", "3"]);
    expect(seen).toEqual(["1", "2", "3"]);
    await consumption.stop();
    await view.stop();
  });

  it("notices that the consumer was taken over while it was away", async () => {
    const queue = fresh("WQ");
    await bus.ensureStream(workQueue(queue));
    const spec = { stream: queue, name: "c", filter: `${queue}.>`, ackWaitMs: 30_000 };
    await bus.ensureConsumer(spec);
    const inbox = new Inbox({ ack: true });
    const consumption = await bus.consume(queue, "c", { maxMessages: 5, onMessage: inbox.onMessage });
    const other = await connectBus({ url: server.url, announce: silent });
    await server.kill();
    await server.restart();
    await Promise.all([
      (async () => {
        await other.deleteConsumer(queue, "c");
        await other.ensureConsumer(spec);
      })(),
      until(systemClock, () => bus.connected()),
    ]);
    expect(await consumption.ended).toBe("gone");
    await other.close();
  });
});

describe("a server that stops answering", () => {
  it("is unknown to the publisher and goes on where it was", async () => {
    const queue = fresh("WQ");
    await bus.ensureStream(workQueue(queue));
    await bus.ensureConsumer({ stream: queue, name: "c", filter: `${queue}.>`, ackWaitMs: 30_000 });
    const inbox = new Inbox({ ack: true });
    const consumption = await bus.consume(queue, "c", { maxMessages: 5, onMessage: inbox.onMessage });
    server.pause();
    try {
      // The signal takes a moment: stopped it is when it does not answer any more.
      const answered = async () =>
        (await bus.publish(`${queue}.b`, bytes("?"), { timeoutMs: 200 })).kind === "stored";
      await until(systemClock, async () => !(await answered()));
      const outcome = await bus.publish(`${queue}.a`, bytes("1"), { msgId: "1", timeoutMs: 500 });
      expect(outcome).toEqual({ kind: "unknown" });
    } finally {
      server.resume();
    }
    expect(await bus.publish(`${queue}.a`, bytes("1"), { msgId: "1" })).toMatchObject({ duplicate: true });
    await until(systemClock, () => inbox.texts.filter((body) => body === "1").length === 1);
    await consumption.stop();
  });
});

describe("other clients", () => {
  it("share buckets and blobs with ours", async () => {
    const nc = await connect({ servers: server.url });
    const js = jetstream(nc);
    const name = fresh("kv");
    await bus.ensureStream(
      limits(`KV_${name}`, { subjects: [`$KV.${name}.>`], maxMsgsPerSubject: 1, markerTtlMs: 60_000 }),
    );
    const ours = new Bucket(bus, name);
    const theirs = await new Kvm(js).open(name);
    const events: BucketEvent[] = [];
    const watch = await ours.watch(">", { onEntry: (event) => events.push(event) });
    await ours.put("a", bytes("ours"));
    expect((await theirs.get("a"))?.string()).toBe("ours");
    await theirs.put("b", "theirs");
    expect(text((await ours.get("b"))?.value ?? bytes(""))).toBe("theirs");
    await theirs.delete("b");
    await theirs.purge("a");
    await until(systemClock, () => events.length === 4);
    expect(events.map((event) => [event.kind, event.key])).toEqual([
      ["put", "a"],
      ["put", "b"],
      ["deleted", "b"],
      ["deleted", "a"],
    ]);
    expect(await ours.get("a")).toBeUndefined();
    expect(await ours.create("a", bytes("again"))).toMatchObject({ kind: "written" });
    await ours.delete("a");
    expect((await theirs.get("a"))?.operation).toBe("DEL");
    await watch.stop();

    const big = new Uint8Array(400_000).fill(7);
    await bus.blobs.put("ours/1", big);
    const store = await new Objm(js).open("blobs");
    expect((await store.getBlob("ours/1"))?.length).toBe(400_000);
    await store.putBlob({ name: "theirs/1" }, new Uint8Array(300_000).fill(9));
    expect((await bus.blobs.get("theirs/1"))?.[299_999]).toBe(9);
    await store.delete("ours/1");
    expect(await bus.blobs.get("ours/1")).toBeUndefined();
    expect(await blobKeys(bus.blobs, "")).toEqual(["theirs/1"]);
    await nc.close();
  });
});

describe("housekeeping", () => {
  it("leaves no consumer behind after views and listings", async () => {
    const stream = fresh("LM");
    await bus.ensureStream(limits(stream));
    for (let i = 0; i < 5; i++) await bus.publish(`${stream}.${i}`, bytes("x"));
    for (let i = 0; i < 3; i++) {
      let count = 0;
      for await (const _ of bus.lastPerSubject(stream, `${stream}.>`)) count++;
      expect(count).toBe(5);
    }
    for await (const _ of bus.lastPerSubject(stream, `${stream}.>`)) break;
    const view = await bus.tail(stream, `${stream}.>`, { existing: true, onMessage: () => undefined });
    await view.stop();
    await until(systemClock, async () => (await bus.consumers(stream)).length === 0);
  });
});
