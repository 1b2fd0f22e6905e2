/** E1: a new generation is written only when every live service can read it. */
import { beforeEach, expect, test } from "vitest";
import { newestGeneration } from "../../../schemas/index.ts";
import { Bucket, ensureTopology, subjects } from "../../../shared/bus/index.ts";
import { Fleet, fleetHeaders } from "../../../shared/fleet/index.ts";
import type { Happening } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, type MemoryBus } from "../../../shared/testing/memory/index.ts";

const names = subjects();
const body = new TextEncoder().encode('{"from":"another version"}');
let clock: SimulatedClock;
let bus: MemoryBus;
let happenings: Happening[];

beforeEach(async () => {
  clock = new SimulatedClock();
  bus = new MemoryBroker({ clock, seed: 1, faults: {} }).connect();
  happenings = [];
  await clock.run(ensureTopology(bus, names, { partitions: 1, historyShards: 1, replicas: 1 }));
});

const bucket = (name: "services" | "workers") => new Bucket(bus, names.bucket(name));
const says = (
  name: "services" | "workers",
  key: string,
  headers: Record<string, string> = {},
  ttlMs = 15_000,
) => clock.run(bucket(name).put(key, body, { headers, ttlMs }));

async function fleet(atMost?: number, atLeast?: number): Promise<Fleet> {
  const made = new Fleet({
    bus,
    names,
    runtime: { clock, announce: (happening) => void happenings.push(happening) },
    ...(atMost === undefined ? {} : { atMost }),
    ...(atLeast === undefined ? {} : { atLeast }),
  });
  await clock.run(made.start());
  return made;
}

const passes = (ms: number) => clock.run(new Promise<void>((resolve) => clock.after(ms, resolve)));

test("a new installation writes the newest at once", async () => {
  const alone = await fleet();
  expect(alone.written).toBe(newestGeneration);
  expect(alone.heldBackBy()).toEqual([]);
  await says("services", "orchestrator.a", fleetHeaders("9.0.0"));
  expect(alone.allows(newestGeneration)).toBe(true);
});

test("with a floor, an entry that anybody may have written takes nothing back", async () => {
  await says("workers", "mallory");
  expect((await fleet(undefined, newestGeneration)).written).toBe(newestGeneration);
});

test("one old worker holds everybody back until it says that it goes", async () => {
  await says("workers", "old-1");
  const mixed = await fleet();
  expect(mixed.written).toBe(1);
  expect(mixed.heldBackBy()).toEqual([{ kind: "worker", id: "old-1", version: undefined, generation: 1 }]);
  await clock.run(bucket("workers").delete("old-1"));
  await passes(10);
  expect(mixed.written).toBe(newestGeneration);
  expect(happenings.at(-1)).toMatchObject({ kind: "generation.written", generation: newestGeneration });
});

test("an old service that comes later is noticed, whatever its entry looks like", async () => {
  const mixed = await fleet();
  await says("services", "watcher.old");
  await passes(10);
  expect(mixed.allows(2)).toBe(false);
  expect(happenings.at(-1)).toMatchObject({ generation: 1, heldBackBy: ["watcher old"] });
});

test("one that falls silent counts for a minute longer: it may only be paused", async () => {
  await says("workers", "old-1");
  const mixed = await fleet();
  await passes(20_000);
  expect(mixed.written).toBe(1);
  await passes(60_000);
  expect(mixed.written).toBe(newestGeneration);
});

test("an operator keeps the way back open", async () => {
  const held = await fleet(1);
  expect(held.written).toBe(1);
  const others = await fleet();
  await says("services", "gateway.held", fleetHeaders("9.0.0", 1));
  await passes(10);
  expect(others.heldBackBy()).toEqual([{ kind: "gateway", id: "held", version: "9.0.0", generation: 1 }]);
});

test("a later version than ours does not make us write what we do not know", async () => {
  await says("services", "orchestrator.later", { "Holdfast-Generation": "99" });
  expect((await fleet()).written).toBe(newestGeneration);
});
