import { beforeEach, describe, expect, test } from "vitest";
import { Grace } from "../../../services/watcher/grace.ts";
import { Bucket, defaultTopology, ensureTopology, subjects } from "../../../shared/bus/index.ts";
import { type Happening, seededRandom } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

let clock: SimulatedClock;
let happenings: Happening[];
let grace: Grace;

beforeEach(() => {
  clock = new SimulatedClock();
  happenings = [];
  const announce = (happening: Happening) => void happenings.push(happening);
  grace = new Grace({ clock, random: seededRandom(1), announce }, 15_000);
});

describe("after an outage of the bus (S14)", () => {
  test("expiries wait for one TTL, the session's own where it has one", async () => {
    grace.outageOver(20_000, "away");
    expect(grace.leftMs()).toBe(15_000);
    expect(grace.leftMs(30_000)).toBe(30_000);
    await clock.advance(14_000);
    expect(grace.leftMs()).toBe(1000);
    expect(grace.leftMs(3000)).toBe(0);
    await clock.advance(1000);
    expect(grace.leftMs()).toBe(0);
    expect(happenings).toEqual([{ kind: "watcher.grace", ms: 15_000, why: "away" }]);
  });

  test("one too short to cost anybody a lease delays nothing", () => {
    grace.outageOver(800, "blip");
    expect(grace.leftMs()).toBe(0);
    expect(grace.leftMs(1000)).toBe(1000);
    expect(happenings).toEqual([]);
  });

  test("a blip within the grace does not end it", async () => {
    grace.outageOver(20_000, "away");
    await clock.advance(5000);
    grace.outageOver(100, "blip");
    expect(grace.leftMs()).toBe(15_000);
  });

  test("a long outage long ago says nothing about a blip now", async () => {
    grace.outageOver(20_000, "away");
    await clock.advance(60_000);
    grace.outageOver(100, "blip");
    expect(grace.leftMs()).toBe(0);
  });
});

describe("a watcher that begins to act", () => {
  const names = subjects();
  let settings: Bucket;

  beforeEach(async () => {
    const bus = new MemoryBroker({ clock }).connect();
    await clock.run(ensureTopology(bus, names, defaultTopology));
    settings = new Bucket(bus, names.bucket("settings"));
  });

  const server = (id: string, name: string, clustered: boolean) => ({
    serverId: () => id,
    serverName: () => name,
    clustered: () => clustered,
  });
  const fresh = (): Grace => new Grace({ clock, random: seededRandom(1), announce: () => undefined }, 15_000);
  const actsOn = async (acting: Grace, on: ReturnType<typeof server>): Promise<number> => {
    await clock.run(acting.compareServer(on, settings));
    return acting.leftMs();
  };

  test("waits where its one server was restarted, and not where it is the same", async () => {
    expect(await actsOn(fresh(), server("A1", "a", false))).toBe(0);
    expect(await actsOn(fresh(), server("A1", "a", false))).toBe(0);
    expect(await actsOn(fresh(), server("A2", "a2", false))).toBe(15_000);
  });

  test("WATCHER-8: knows what the server ended just after it was restarted, and before, from what it ends later", async () => {
    const acting = fresh();
    expect(acting.isOfStart(clock.now())).toBe(false);
    acting.outageOver(2_000, "the connection was away");
    const restartedAt = clock.now();
    await clock.advance(60_000);
    expect([restartedAt - 5_000, restartedAt + 1_000].map((at) => acting.isOfStart(at))).toEqual([
      true,
      true,
    ]);
    expect([restartedAt + 30_000, clock.now()].map((at) => acting.isOfStart(at))).toEqual([false, false]);
  });

  test("defect 13: does not wait because it talks to another server of the cluster", async () => {
    expect(await actsOn(fresh(), server("A1", "a", true))).toBe(0);
    expect(await actsOn(fresh(), server("B1", "b", true))).toBe(0);
    expect(await actsOn(fresh(), server("A1", "a", true))).toBe(0);
    expect(await actsOn(fresh(), server("B2", "b", true)), "b itself was restarted").toBe(15_000);
  });

  test("defect 13: does not wait for an outage that was over when it connected, long before it acted", async () => {
    await actsOn(fresh(), server("A1", "a", false));
    const standby = fresh();
    await clock.advance(10_000);
    expect(await actsOn(standby, server("A2", "a2", false)), "counted from its connection").toBe(5_000);
    const patient = fresh();
    await clock.advance(60_000);
    expect(await actsOn(patient, server("A3", "a3", false))).toBe(0);
  });
});
