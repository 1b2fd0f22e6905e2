/** The twin itself: its faults strike, its runs repeat, its dead stay dead. */
import { describe, expect, it } from "vitest";
import type { Delivery } from "../../../shared/bus/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, noFaults, someFaults } from "../../../shared/testing/memory/index.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const queue = { name: "Q", subjects: ["q.>"], retention: "workqueue" as const, dedupeWindowMs: 600_000 };

/** 200 messages through two workers, one of which dies, under every fault. */
async function run(seed: number) {
  const clock = new SimulatedClock();
  const broker = new MemoryBroker({
    clock,
    seed,
    faults: { ...someFaults, deliveredTwice: 0.1, ackLost: 0.1 },
  });
  const trace: string[] = [];
  const done = new Set<string>();
  const boss = broker.connect();
  await clock.run(boss.ensureStream(queue));
  await clock.run(boss.ensureConsumer({ stream: "Q", name: "c", filter: "q.>", ackWaitMs: 2_000 }));
  const workers = [broker.connect(), broker.connect()];
  for (const [i, worker] of workers.entries()) {
    await clock.run(
      worker.consume("Q", "c", {
        maxMessages: 5,
        onMessage: (message) => {
          const text = new TextDecoder().decode(message.body);
          trace.push(`${clock.monotonic().toFixed(3)} w${i} ${text} ${message.deliveries}`);
          clock.after(broker.fate.upTo(50), () => {
            if (worker.killed) return;
            done.add(text);
            message.ack();
          });
        },
      }),
    );
  }
  const publishing = (async () => {
    for (let i = 0; i < 200; i++) {
      while ((await boss.publish("q.a", bytes(`${i}`), { msgId: `${i}`, timeoutMs: 500 })).kind !== "stored");
      if (i === 100) workers[0]?.kill();
      if (i === 150) {
        broker.stop();
        clock.after(1_000, () => broker.start());
      }
    }
  })();
  await clock.run(publishing);
  await clock.runUntil(() => done.size === 200 && broker.streams.get("Q")?.size === 0);
  return { trace, hits: broker.fate.hits, virtualMs: clock.monotonic() };
}

describe("the twin", () => {
  it("delivers to a consumption anew when a delivery was lost with its connection and is settled meanwhile", async () => {
    const clock = new SimulatedClock();
    const broker = new MemoryBroker({ clock, seed: 1, faults: noFaults });
    const boss = broker.connect();
    await clock.run(boss.ensureStream(queue));
    await clock.run(boss.ensureConsumer({ stream: "Q", name: "c", filter: "q.>", ackWaitMs: 2_000 }));
    const worker = broker.connect();
    const seen: string[] = [];
    let settleFirst: (() => void) | undefined;
    const onMessage = (message: Delivery) => {
      seen.push(new TextDecoder().decode(message.body));
      settleFirst ??= () => message.ack();
    };
    await clock.run(worker.consume("Q", "c", { maxMessages: 1, onMessage }));
    await clock.run(boss.publish("q.a", bytes("first")));
    await clock.advance(10);
    worker.lose("incoming");
    await clock.advance(2_100); // delivered again, and lost
    settleFirst?.();
    await clock.advance(10);
    worker.disconnect();
    worker.letThrough("incoming");
    worker.reconnect();
    await clock.run(boss.publish("q.a", bytes("second")));
    await clock.advance(10);
    expect(seen).toEqual(["first", "second"]);
  });

  it("loses nothing under its faults, and the faults really struck", async () => {
    const struck = new Set<string>();
    for (let seed = 1; seed <= 10; seed++) {
      const { hits } = await run(seed);
      for (const fault of Object.keys(hits)) struck.add(fault);
    }
    for (const fault of [
      "publishLost",
      "publishUnanswered",
      "ackLost",
      "deliveredTwice",
      "deliveryLost",
      "deliveryDelayed",
    ]) {
      expect(struck).toContain(fault);
    }
  });

  it("repeats a run from its seed", async () => {
    const [first, second, other] = [await run(42), await run(42), await run(43)];
    expect(second).toEqual(first);
    expect(other.trace).not.toEqual(first.trace);
  });

  it("never answers the dead, and gives their work to the living", async () => {
    const clock = new SimulatedClock();
    const broker = new MemoryBroker({ clock });
    const [dead, alive] = [broker.connect(), broker.connect()];
    await clock.run(alive.ensureStream(queue));
    await clock.run(alive.ensureConsumer({ stream: "Q", name: "c", filter: "q.>", ackWaitMs: 1_000 }));
    await clock.run(alive.publish("q.a", bytes("1")));
    const taken = await clock.run(dead.next("Q", "c", { expiresMs: 100 }));
    expect(taken?.deliveries).toBe(1);
    dead.kill();
    taken?.ack();
    let answered = false;
    void dead.publish("q.a", bytes("2")).finally(() => {
      answered = true;
    });
    void dead.last("Q", "q.a").finally(() => {
      answered = true;
    });
    const again = await clock.run(alive.next("Q", "c", { expiresMs: 5_000 }));
    expect(again?.deliveries).toBe(2);
    await clock.advance(60_000);
    expect(answered).toBe(false);
  });

  it("shows from a copy what was there a while ago, and from the leader what is there", async () => {
    const clock = new SimulatedClock();
    const bus = new MemoryBroker({ clock, faults: { ...noFaults, replicaLagMs: [20, 20] } }).connect();
    const seen = async (stream: string) => [
      (await clock.run(bus.last(stream, `${stream}.a`)))?.seq,
      (await clock.run(bus.last(stream, `${stream}.a`, { leader: true })))?.seq,
      (await clock.run(bus.read(stream, `${stream}.a`)))?.length,
    ];
    for (const [name, replicas] of [
      ["one", 1],
      ["three", 3],
    ] as const) {
      await clock.run(bus.ensureStream({ name, subjects: [`${name}.>`], retention: "limits", replicas }));
      await clock.run(bus.publish(`${name}.a`, bytes("1")));
    }
    expect(await seen("one")).toEqual([1, 1, 1]);
    expect(await seen("three")).toEqual([undefined, 1, 0]);
    await clock.advance(20);
    expect(await seen("three")).toEqual([1, 1, 1]);
  });

  it("can store long after it was given up", async () => {
    const clock = new SimulatedClock();
    const broker = new MemoryBroker({ clock, faults: { ...noFaults, publishLate: 1 } });
    const bus = broker.connect();
    await clock.run(bus.ensureStream(queue));
    expect(await clock.run(bus.publish("q.a", bytes("1"), { timeoutMs: 500 }))).toEqual({ kind: "unknown" });
    expect(broker.streams.get("Q")?.size).toBe(0);
    await clock.advance(1_000);
    expect(broker.streams.get("Q")?.size).toBe(1);
  });
});
