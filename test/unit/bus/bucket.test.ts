/** Writes whose outcome is unknown (BUS-1, BUCKET-2), on the twin. */
import { beforeEach, describe, expect, it } from "vitest";
import { Bucket } from "../../../shared/bus/index.ts";
import { freeRunning, SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, type MemoryBus, noFaults } from "../../../shared/testing/memory/index.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("bucket and unknown outcomes", () => {
  let broker: MemoryBroker;
  let bus: MemoryBus;
  let bucket: Bucket;
  beforeEach(async () => {
    const clock = new SimulatedClock();
    const time = freeRunning(clock);
    broker = new MemoryBroker({ clock, seed: 3 });
    bus = broker.connect();
    await bus.ensureStream({
      name: "KV_b",
      subjects: ["$KV.b.>"],
      retention: "limits",
      maxMsgsPerSubject: 1,
      markerTtlMs: 60_000,
    });
    bucket = new Bucket(bus, "b");
    return () => time.stop();
  });

  it("finds its own write that was stored without an answer", async () => {
    broker.fate.faults = { ...noFaults, publishUnanswered: 1 };
    expect(await bucket.create("k", bytes("1"))).toEqual({ kind: "written", revision: 1 });
    expect(await bucket.update("k", bytes("2"), 1)).toEqual({ kind: "written", revision: 2 });
    expect(await bucket.delete("k", { revision: 2 })).toEqual({ kind: "written", revision: 3 });
    expect(broker.streams.get("KV_b")?.lastSeq).toBe(3);
  });

  it("tries a lost write once more, and then says that nothing is known", async () => {
    broker.fate.faults = { ...noFaults, publishLost: 1 };
    expect(await bucket.create("k", bytes("1"))).toEqual({ kind: "unknown" });
    expect(broker.fate.hits.publishLost).toBe(2);
  });

  it("is not fooled by another's write of the same value", async () => {
    const rival = new Bucket(broker.connect(), "b");
    expect(await rival.create("k", bytes("same"))).toMatchObject({ revision: 1 });
    broker.fate.faults = { ...noFaults, publishLost: 1 };
    expect(await bucket.create("k", bytes("same"))).toEqual({ kind: "conflict" });
    expect(await bucket.update("k", bytes("same"), 0)).toEqual({ kind: "conflict" });
  });

  it("says unknown while nobody answers at all", async () => {
    broker.stop();
    expect(await bucket.put("k", bytes("1"), { timeoutMs: 100 })).toEqual({ kind: "unknown" });
    broker.start();
    expect(await bucket.put("k", bytes("1"))).toEqual({ kind: "written", revision: 1 });
  });
});
