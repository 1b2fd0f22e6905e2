import { beforeEach, describe, expect, test } from "vitest";
import type { LeaseValue } from "../../../schemas/index.ts";
import { type Lease, LeaseKeeper, type LossWhy } from "../../../shared/leases/index.ts";
import { type Happening, seededRandom } from "../../../shared/runtime/index.ts";
import { LeaseServer } from "./lease-server.ts";
import { ManualClock, settle } from "./manual-clock.ts";

const ttlMs = 15_000;
const value: LeaseValue = { v: 1, holder: "w1" };
const subject = (key: string) => `$KV.leases.${key}`;

let clock: ManualClock;
let server: LeaseServer;
let happenings: Happening[];
let lost: { lease: Lease; why: LossWhy; at: number }[];

function keeper(options: { ttlMs?: number; seed?: number } = {}): LeaseKeeper {
  const made = new LeaseKeeper({
    bus: server.bus(),
    bucket: "leases",
    runtime: { clock, random: seededRandom(options.seed ?? 7), announce: (h) => happenings.push(h) },
    ttlMs: options.ttlMs ?? ttlMs,
  });
  made.onLost((lease, why) => lost.push({ lease, why, at: clock.monotonic() }));
  return made;
}

async function claimed(from: LeaseKeeper, key = "partition.1", ttl?: number): Promise<Lease> {
  const outcome = await from.claim(key, value, ttl);
  if (outcome.kind !== "granted") throw new Error(`expected to be granted, was ${JSON.stringify(outcome)}`);
  return outcome.lease;
}

beforeEach(() => {
  clock = new ManualClock();
  server = new LeaseServer(clock);
  happenings = [];
  lost = [];
});

describe("claim", () => {
  test("its revision is the epoch, and the next one is refused with the holder's name (S2)", async () => {
    const first = await claimed(keeper(), "session.s.1");
    expect(first.epoch).toBe(server.last(subject("session.s.1"))?.seq);
    const second = await keeper({ seed: 8 }).claim("session.s.1", { v: 1, holder: "w2" });
    expect(second).toEqual({ kind: "taken", why: "held", holder: "w1", revision: first.epoch });
  });

  test("one winner of fifty", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, seed) => keeper({ seed }).claim("session.s.1", value)),
    );
    expect(outcomes.filter(({ kind }) => kind === "granted")).toHaveLength(1);
  });

  test("a partition's key is claimed anew after expiry and after release, with a greater epoch", async () => {
    const one = keeper();
    const first = await claimed(one);
    await one.stop();
    await clock.advance(ttlMs);
    const two = keeper({ seed: 8 });
    const second = await claimed(two);
    expect(second.epoch).toBeGreaterThan(first.epoch);
    expect(await two.release(second)).toBe("released");
    expect((await claimed(keeper({ seed: 9 }))).epoch).toBeGreaterThan(second.epoch);
  });

  test.each(["expired", "released"])(
    "the key of an attachment is spent once it %s (LEASE-4)",
    async (end) => {
      const one = keeper();
      const lease = await claimed(one, "session.s.1");
      if (end === "released") await one.release(lease);
      else {
        await one.stop();
        await clock.advance(ttlMs);
      }
      expect(await keeper({ seed: 8 }).claim("session.s.1", value)).toMatchObject({
        kind: "taken",
        why: "spent",
      });
    },
  );

  test("stored but not answered: recognised by reading, counted from its beginning (LEASE-1, LEASE-3)", async () => {
    server.mood = "mute";
    const one = keeper();
    const claim = one.claim("session.s.1", value);
    await settle();
    server.mood = "well";
    await clock.advance(2300);
    const outcome = await claim;
    expect(outcome).toMatchObject({ kind: "granted", lease: { epoch: 1 } });
    if (outcome.kind === "granted") expect(one.deadlineOf(outcome.lease)).toBe(ttlMs - 1000);
  });

  test("never answered: a transient fault that names the key", async () => {
    server.mood = "away";
    const claim = keeper().claim("partition.1", value);
    const refused = expect(claim).rejects.toMatchObject({ kind: "transient", code: "claim_unanswered" });
    await clock.advance(10_000);
    await refused;
  });

  test("answered after its own deadline: renewed before it is granted", async () => {
    server.latencyMs = 600;
    const one = keeper({ ttlMs: 1000 });
    const claim = one.claim("partition.1", value);
    await clock.advance(600);
    server.latencyMs = 0;
    expect(await claim).toMatchObject({ kind: "granted" });
    server.latencyMs = 950;
    const late = one.claim("partition.2", value);
    await clock.advance(949);
    server.latencyMs = 0;
    await clock.advance(2);
    const outcome = await late;
    expect(outcome).toMatchObject({ kind: "granted" });
    if (outcome.kind === "granted") expect(one.isHeld(outcome.lease)).toBe(true);
  });

  test.each([500, 999, 1500, 0, Number.NaN])("a TTL of %s ms is refused", async (bad) => {
    await expect(keeper().claim("partition.1", value, bad)).rejects.toMatchObject({
      code: "invalid_lease_ttl",
      message: expect.stringContaining("whole seconds, at least 1 s"),
    });
    expect(() => keeper({ ttlMs: bad })).toThrow("whole seconds");
  });
});

describe("renewal", () => {
  test("keeps a lease for as long as it is wanted, three times a TTL, always with TTL and fence (LEASE-5)", async () => {
    const one = keeper();
    const lease = await claimed(one);
    await clock.advance(10 * ttlMs);
    expect(one.isHeld(lease)).toBe(true);
    expect(lost).toEqual([]);
    const renewals = server.writes.slice(1);
    expect(renewals.length).toBeGreaterThanOrEqual(30);
    expect(renewals.length).toBeLessThanOrEqual(35);
    for (const { options } of renewals) {
      expect(options).toMatchObject({ ttlMs, timeoutMs: 500, expectLastSeq: expect.any(Number) });
      expect(options.msgId).toBeUndefined();
    }
  });

  test.each([1000, 3000, 15_000])(
    "TTL %s: with the bus away it fences itself before the server does (S7)",
    async (ttl) => {
      const one = keeper({ ttlMs: ttl });
      const lease = await claimed(one);
      await clock.advance(ttl * 2.4);
      server.mood = "away";
      const awaySince = clock.monotonic();
      await clock.advance(ttl);
      expect(lost).toEqual([{ lease, why: "expired", at: expect.any(Number) }]);
      expect(one.isHeld(lease)).toBe(false);
      await clock.advance(ttl);
      const marker = server.last(subject("partition.1"));
      expect(marker?.headers["Nats-Marker-Reason"]).toBe("MaxAge");
      const expiredAt = (marker?.at ?? 0) - clock.wallOffset;
      expect(lost[0]?.at).toBeLessThan(expiredAt);
      expect(lost[0]?.at).toBeGreaterThan(awaySince + ttl / 2);
    },
  );

  test.each([1000, 3000, 15_000])(
    "TTL %s: an outage of half a TTL is survived by fast retries",
    async (ttl) => {
      for (let seed = 0; seed < 20; seed++) {
        const one = keeper({ ttlMs: ttl, seed });
        const lease = await claimed(one, `partition.${seed}`);
        await clock.advance(ttl * 2 + (seed * ttl) / 60);
        server.mood = "away";
        await clock.advance(ttl * 0.45);
        server.mood = "well";
        await clock.advance(ttl * 2);
        expect(one.isHeld(lease)).toBe(true);
        await one.release(lease);
      }
      expect(lost).toEqual([]);
    },
  );

  test("answered late: it counts from its beginning (LEASE-1)", async () => {
    const one = keeper();
    const lease = await claimed(one);
    server.latencyMs = 400;
    while (one.deadlineOf(lease) === ttlMs - 1000) await clock.advance(25);
    expect(one.deadlineOf(lease)).toBe((server.writes.at(-1)?.at ?? Number.NaN) + ttlMs - 1000);
  });

  test("stored but not answered: the revision is adopted and the lease goes on (LEASE-2)", async () => {
    const one = keeper();
    const lease = await claimed(one);
    server.mood = "mute";
    await clock.advance(5600);
    expect(server.last(subject("partition.1"))?.seq).toBe(2);
    server.mood = "well";
    await clock.advance(5 * ttlMs);
    expect(one.isHeld(lease)).toBe(true);
    expect(lost).toEqual([]);
  });

  test("an adopted renewal counts from the earliest that went unanswered", async () => {
    const one = keeper();
    const lease = await claimed(one);
    server.mood = "mute";
    while (server.writes.length < 4) await clock.advance(25);
    server.mood = "well";
    while (one.deadlineOf(lease) === ttlMs - 1000) await clock.advance(25);
    const [, first] = server.writes;
    expect(one.deadlineOf(lease)).toBe((first?.at ?? Number.NaN) + ttlMs - 1000);
  });

  test.each([
    ["taken", {}],
    ["released", { "KV-Operation": "PURGE" }],
    ["expired", { "Nats-Marker-Reason": "MaxAge" }],
  ] as const)("%s by somebody else: lost once, with the reason", async (why, headers) => {
    const one = keeper();
    const lease = await claimed(one);
    server.store(subject("partition.1"), headers);
    await clock.advance(2 * ttlMs);
    expect(lost).toEqual([{ lease, why, at: expect.any(Number) }]);
    expect(happenings.filter(({ kind }) => kind === "lease.lost")).toHaveLength(1);
    expect(await one.release(lease)).toBe("gone");
  });

  test("a process that was paused knows before any timer fired (F10)", async () => {
    const one = keeper();
    const lease = await claimed(one);
    await clock.advance(6000);
    clock.pause(ttlMs + 5000);
    expect(one.isHeld(lease)).toBe(false);
    await clock.advance(0);
    expect(lost).toHaveLength(1);
    expect(one.isHeld(lease)).toBe(false);
  });

  test("the wall clock is free to jump (F31)", async () => {
    const one = keeper();
    const lease = await claimed(one);
    clock.wallOffset += 3_600_000;
    await clock.advance(ttlMs);
    clock.wallOffset -= 7_200_000;
    await clock.advance(3 * ttlMs);
    expect(one.isHeld(lease)).toBe(true);
    expect(lost).toEqual([]);
  });

  test("many leases are renewed together, and not all at the same time", async () => {
    const one = keeper();
    await Promise.all(Array.from({ length: 300 }, (_, i) => claimed(one, `partition.${i}`)));
    await clock.advance(10 * ttlMs);
    const renewals = happenings.filter((h) => h.kind === "lease.renewed");
    expect(renewals.length).toBeLessThan(6000);
    expect(Math.max(...renewals.map((h) => h.keys))).toBeLessThan(20);
    expect(one.held()).toHaveLength(300);
  });
});

describe("release", () => {
  test("is a CAS, and twice is once (S9)", async () => {
    const one = keeper();
    const lease = await claimed(one);
    await clock.advance(ttlMs);
    const both = [one.release(lease), one.release(lease)];
    expect(one.isHeld(lease)).toBe(false);
    expect(await Promise.all(both)).toEqual(["released", "gone"]);
    await clock.advance(2 * ttlMs);
    expect(lost).toEqual([]);
    expect(server.last(subject("partition.1"))?.headers["KV-Operation"]).toBe("PURGE");
  });

  test("leaves nothing behind in the end, and never an expiry", async () => {
    const one = keeper();
    await one.release(await claimed(one));
    await clock.advance(3_600_000);
    expect(server.last(subject("partition.1"))).toBeUndefined();
  });

  test("waits for a renewal on its way", async () => {
    const one = keeper();
    const lease = await claimed(one);
    server.latencyMs = 300;
    while (server.writes.length < 2) await clock.advance(25);
    const release = one.release(lease);
    await clock.advance(1000);
    expect(await release).toBe("released");
  });

  test("after an unanswered renewal that was stored it removes that one", async () => {
    const one = keeper();
    const lease = await claimed(one);
    server.mood = "mute";
    while (server.writes.length < 2) await clock.advance(25);
    await clock.advance(510);
    server.mood = "well";
    expect(await one.release(lease)).toBe("released");
  });

  test("an unanswered release that landed counts as released", async () => {
    const one = keeper();
    const lease = await claimed(one);
    server.mood = "mute";
    const release = one.release(lease);
    await settle();
    server.mood = "well";
    await clock.advance(1000);
    expect(await release).toBe("released");
  });

  test("cannot hit a successor", async () => {
    const one = keeper();
    const lease = await claimed(one);
    const successor = server.store(subject("partition.1"), {});
    expect(await one.release(lease)).toBe("gone");
    expect(server.last(subject("partition.1"))?.seq).toBe(successor);
  });

  test("gives up when nobody answers: it runs out by itself", async () => {
    const one = keeper();
    const lease = await claimed(one);
    server.mood = "away";
    const release = one.release(lease);
    await clock.advance(6000);
    expect(await release).toBe("gone");
  });
});

test("stop renews no more and tells nobody; what is held runs out (LEASE-7)", async () => {
  const one = keeper();
  const lease = await claimed(one);
  await one.stop();
  await one.stop();
  expect(one.isHeld(lease)).toBe(false);
  await clock.advance(ttlMs);
  expect(server.writes).toHaveLength(1);
  expect(lost).toEqual([]);
});
