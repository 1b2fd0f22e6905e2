import { expect, test } from "vitest";
import { Fault } from "../../../shared/errors/index.ts";
import { OwnStreamLimit } from "../../../shared/history/own-stream-limit.ts";
import { type Happening, seededRandom } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

function setUp() {
  const clock = new SimulatedClock();
  const bus = new MemoryBroker({ clock }).connect();
  const told: Happening[] = [];
  const runtime = { clock, random: seededRandom(1), announce: (one: Happening) => void told.push(one) };
  const counts = { asked: 0, slow: 0 };
  const account = bus.account.bind(bus);
  bus.account = async () => {
    counts.asked++;
    if (counts.slow-- <= 0) return account();
    await new Promise<void>((resolve) => clock.after(5_000, resolve));
    throw new Fault("transient", { code: "nats_timeout", message: "no answer" });
  };
  return {
    clock,
    told,
    counts,
    limit: new OwnStreamLimit({ bus, runtime, max: 10_000, others: 0, anyStream: "any" }),
  };
}

const starts = <T>(take: () => Promise<T>) => Promise.all(Array.from({ length: 1_400 }, take));

test("defect 16: one slow request before the first count is one line and one retry for all starts that wait", async () => {
  const { clock, told, counts, limit } = setUp();
  counts.slow = 1;
  const taken = await clock.run(starts(() => limit.take()));
  expect(new Set(taken)).toEqual(new Set([true]));
  expect(told).toHaveLength(1);
  expect(told[0]).toMatchObject({ kind: "fault", code: "stream_count" });
  expect(counts.asked).toBe(2);
});

test("defect 16: one slow request later holds nobody up, and is one line", async () => {
  const { clock, told, counts, limit } = setUp();
  await clock.run(limit.take());
  await clock.advance(2_000);
  counts.slow = 1;
  const before = clock.monotonic();
  await clock.run(starts(() => limit.take()));
  expect(clock.monotonic(), "the old count serves on").toBe(before);
  await clock.run(starts(() => limit.take()));
  await clock.advance(10_000);
  expect(told).toHaveLength(1);
  expect(counts.asked).toBe(3);
});

test("where the server does not answer for long, whoever waits is told", async () => {
  const { clock, counts, limit } = setUp();
  counts.slow = 1_000;
  await expect(clock.run(limit.take(), 60_000)).rejects.toMatchObject({ code: "nats_timeout" });
});
