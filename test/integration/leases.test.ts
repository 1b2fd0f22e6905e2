import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { InstanceId, type LeaseValue, SessionId, SessionReport } from "../../schemas/index.ts";
import {
  type Bus,
  bucketStream,
  bucketSubject,
  connectBus,
  defaultTopology,
  ensureTopology,
  leaseKeys,
  type StoredMessage,
  subjects,
} from "../../shared/bus/index.ts";
import {
  type Lease,
  LeaseKeeper,
  type Leases,
  type LossWhy,
  readLease,
  ThreadedLeaseKeeper,
} from "../../shared/leases/index.ts";
import { type Runtime, silent, systemRuntime } from "../../shared/runtime/index.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";

const names = subjects();
const bucket = names.bucket("leases");
const value: LeaseValue = { v: 1, holder: "w1" };
const runtime = systemRuntime();

let nats: TestNats;
let bus: Bus;
let round = 0;
/** A key of its own for each test, so that they need not clean up. */
const key = (part: string) => `partition.${round}_${part}`;

beforeAll(async () => {
  nats = await startNats();
  bus = await connectBus({ url: nats.url, announce: silent });
  await ensureTopology(bus, names, { ...defaultTopology, historyShards: 1 });
});

afterAll(async () => {
  await bus?.close();
  await nats?.stop();
});

beforeEach(() => {
  round++;
});

const made: Leases[] = [];
afterEach(async () => {
  await Promise.all(made.splice(0).map((keeper) => keeper.stop()));
});

function plain(ttlMs: number, on = bus): LeaseKeeper {
  const keeper = new LeaseKeeper({ bus: on, bucket, runtime, ttlMs });
  made.push(keeper);
  return keeper;
}

/** `direct`: claims go over the connection of the main loop, as a worker has it. */
async function threaded(ttlMs: number, stallLimitMs?: number, direct = false): Promise<ThreadedLeaseKeeper> {
  const keeper = new ThreadedLeaseKeeper({
    ...(direct && { bus }),
    connection: { url: nats.url, name: "test-leases" },
    bucket,
    runtime,
    ttlMs,
    prefix: "",
    ...(stallLimitMs !== undefined && { stallLimitMs }),
  });
  made.push(keeper);
  await keeper.start();
  return keeper;
}

async function granted(keeper: Leases, part = "a", ttlMs?: number): Promise<Lease> {
  const outcome = await keeper.claim(key(part), value, ttlMs);
  if (outcome.kind !== "granted") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
  return outcome.lease;
}

const lossOf = (keeper: Leases): Promise<{ lease: Lease; why: LossWhy }> =>
  new Promise((resolve) => keeper.onLost((lease, why) => resolve({ lease, why })));

/** Resolves with the first message of the key that is meant, also if it was there before. */
async function seen(part: string, meant: (message: StoredMessage) => boolean): Promise<StoredMessage> {
  let found: (message: StoredMessage) => void = () => undefined;
  const wanted = new Promise<StoredMessage>((resolve) => {
    found = resolve;
  });
  const tail = await bus.tail(bucketStream(bucket), bucketSubject(bucket, key(part)), {
    existing: true,
    onMessage: (message) => meant(message) && found(message),
  });
  const message = await wanted;
  await tail.stop();
  return message;
}

const released = (message: StoredMessage) => readLease(message).kind === "released";
const expired = (message: StoredMessage) => readLease(message).kind === "expired";
const block = (ms: number) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

describe("on the real server", () => {
  test("fifty claimers of one key: one wins, and its revision is the epoch", async () => {
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => plain(3000).claim(key("a"), value)));
    const winners = outcomes.filter((outcome) => outcome.kind === "granted");
    expect(winners).toHaveLength(1);
    const last = await bus.last(bucketStream(bucket), bucketSubject(bucket, key("a")), { leader: true });
    expect(winners[0]).toMatchObject({ lease: { epoch: last?.seq } });
  });

  test("renewed it lives on; left alone it expires once, and the next epoch is greater", async () => {
    const one = plain(1000);
    const lease = await granted(one);
    const first = await seen("a", (message) => message.seq > lease.epoch + 3);
    expect(readLease(first).kind).toBe("held");
    expect(one.isHeld(lease)).toBe(true);
    await one.stop();
    const marker = await seen("a", expired);
    const next = await granted(plain(1000));
    expect(next.epoch).toBeGreaterThan(marker.seq);
  });

  test("released: gone without an expiry, free for the next", async () => {
    const one = plain(1000);
    const lease = await granted(one);
    expect(await one.release(lease)).toBe("released");
    expect(await one.release(lease)).toBe("gone");
    const last = await bus.last(bucketStream(bucket), bucketSubject(bucket, key("a")), { leader: true });
    expect(last && readLease(last).kind).toBe("released");
    await granted(plain(1000));
  });

  test("the tombstone of a release ages out without a marker", async () => {
    const subject = bucketSubject(bucket, key("a"));
    const headers = { "KV-Operation": "PURGE" };
    const stored = await bus.publish(subject, new Uint8Array(), { headers, ttlMs: 1000 });
    expect(stored.kind).toBe("stored");
    const expiresAfter = plain(2000);
    await granted(expiresAfter, "clock");
    await expiresAfter.stop();
    await seen("clock", expired);
    expect(await bus.last(bucketStream(bucket), subject, { leader: true })).toBeUndefined();
  });

  test("evicted by an operator: lost as released", async () => {
    const one = plain(1000);
    const loss = lossOf(one);
    const lease = await granted(one);
    await bus.publish(bucketSubject(bucket, lease.key), new Uint8Array(), {
      headers: { "KV-Operation": "DEL" },
    });
    expect(await loss).toMatchObject({ lease, why: "released" });
  });

  test("a server paused longer than the TTL: the holder fences itself without it (S7)", async () => {
    const one = plain(2000);
    const loss = lossOf(one);
    const lease = await granted(one);
    nats.pause();
    // The server says nothing until it is resumed. That it is in time is proved in virtual time (unit/leases).
    const { why } = await loss;
    expect(one.isHeld(lease)).toBe(false);
    nats.resume();
    expect(why).toBe("expired");
  });
});

describe("with a server of its own", () => {
  let own: TestNats;
  let ownBus: Bus;

  beforeAll(async () => {
    own = await startNats();
    ownBus = await connectBus({ url: own.url, announce: silent });
    await ensureTopology(ownBus, names, { ...defaultTopology, historyShards: 1 });
  });

  afterAll(async () => {
    await ownBus?.close();
    await own?.stop();
  });

  test("kill -9 of the server, back in time: not one of 200 leases is lost", async () => {
    const keeper = plain(5000, ownBus);
    let lost = 0;
    keeper.onLost(() => lost++);
    const leases = await Promise.all(
      Array.from({ length: 200 }, (_, i) => keeper.claim(key(String(i)), value)),
    );
    await own.kill();
    await own.restart();
    const renewals = new Set<string>();
    const filter = bucketSubject(bucket, ">");
    await new Promise<void>((resolve) => {
      void ownBus.tail(bucketStream(bucket), filter, {
        existing: false,
        onMessage: ({ subject }) => renewals.add(subject).size === 200 && resolve(),
      });
    });
    expect(lost).toBe(0);
    for (const outcome of leases) {
      expect(outcome.kind === "granted" && keeper.isHeld(outcome.lease)).toBe(true);
    }
  });
});

describe("on a thread of its own (S8)", () => {
  test("claims, renews, releases, and refuses a second holder", async () => {
    const keeper = await threaded(1000, undefined, true);
    const lease = await granted(keeper);
    await seen("a", (message) => message.seq > lease.epoch + 2);
    expect(keeper.isHeld(lease)).toBe(true);
    expect(await plain(1000).claim(key("a"), value)).toMatchObject({ kind: "taken", holder: "w1" });
    expect(await keeper.release(lease)).toBe("released");
    expect(keeper.isHeld(lease)).toBe(false);
    expect(await keeper.release(lease)).toBe("gone");
    await expect(keeper.claim(key("b"), value, 1500)).rejects.toMatchObject({ code: "invalid_lease_ttl" });
  });

  test("a main loop blocked for longer than the TTL, within the limit: keeps its lease", async () => {
    const keeper = await threaded(2000, 20_000);
    const lease = await granted(keeper);
    block(3500);
    expect(keeper.isHeld(lease)).toBe(true);
  });

  test("a main loop blocked beyond the limit: loses it, and knows at once (F15)", async () => {
    const keeper = await threaded(1000);
    const loss = lossOf(keeper);
    const lease = await granted(keeper);
    block(2500);
    expect(keeper.isHeld(lease)).toBe(false);
    expect(await loss).toMatchObject({ lease, why: "stalled" });
    await seen("a", released);
  });

  test("defect 19: its sessions are given back after the TTL, and their instances told why", async () => {
    const keeper = await threaded(2000, undefined, true);
    const sessionId = SessionId.parse(`blocked-${round}`);
    const session = { instanceId: InstanceId.parse(`i-${round}`), sessionId, attachment: 1 };
    const sessionKey = leaseKeys.session(sessionId, 1);
    const outcome = await keeper.claim(sessionKey, { ...value, session });
    if (outcome.kind !== "granted") throw new Error("not granted");
    // Renewed just before it blocks: left to run out, the lease would live for nearly two TTLs.
    await new Promise<void>((resolve) => {
      const subject = bucketSubject(bucket, sessionKey);
      void bus.tail(bucketStream(bucket), subject, {
        existing: false,
        onMessage: ({ seq }) => seq > outcome.lease.epoch && resolve(),
      });
    });
    block(4500);
    const unblockedAt = Date.now();
    const last = await bus.last(bucketStream(bucket), bucketSubject(bucket, sessionKey), { leader: true });
    expect(last && readLease(last).kind).toBe("released");
    expect(last?.at, "while the loop was still blocked").toBeLessThan(unblockedAt);
    const inbox = async () => (await bus.read(names.inboxStream, names.inboxOf(session.instanceId))) ?? [];
    await expect.poll(inbox).not.toHaveLength(0);
    const [stored] = await inbox();
    const told = SessionReport.parse(JSON.parse(new TextDecoder().decode(stored?.body)));
    const { epoch } = outcome.lease;
    expect(told).toMatchObject({ sessionId, attachment: 1, report: { kind: "lost", epoch, reason: "hung" } });
    expect(told.report).toMatchObject({ detail: expect.stringMatching(/blocked its worker's event loop/) });
  });

  test("evicted by an operator: the main thread is told", async () => {
    const keeper = await threaded(1000, undefined, true);
    const loss = lossOf(keeper);
    const lease = await granted(keeper);
    await bus.publish(bucketSubject(bucket, lease.key), new Uint8Array(), {
      headers: { "KV-Operation": "DEL" },
    });
    expect(await loss).toMatchObject({ lease, why: "released" });
    expect(keeper.isHeld(lease)).toBe(false);
  });

  test("a process paused for longer than the TTL knows at its first turn after it (F10)", async () => {
    const entry = fileURLToPath(new URL("../support/processes/lease-holder-child.ts", import.meta.url));
    const child = fork(entry, [nats.url, key("a"), "1000"], { execArgv: ["--import", "tsx"] });
    const heard = new Map<string, unknown>();
    child.on("message", (message: { kind: string }) => heard.set(message.kind, message));
    const said = (kind: string) =>
      vi.waitFor(() => expect(heard.get(kind)).toBeDefined(), { timeout: 20_000 });
    try {
      await said("granted");
      expect(heard.get("granted")).toMatchObject({ held: true });
      child.kill("SIGSTOP");
      await seen("a", expired);
      child.kill("SIGCONT");
      await said("woke");
      await said("lost");
      expect(heard.get("woke")).toMatchObject({ held: false });
      expect(heard.get("lost")).toMatchObject({ held: false, why: "expired" });
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("no server: the thread says so, waits for one, and ends when it is stopped", async () => {
    let keeper: ThreadedLeaseKeeper | undefined;
    let started: Promise<string> | undefined;
    const said = await new Promise<string>((resolve) => {
      const announce: Runtime["announce"] = (happening) => {
        if (happening.kind === "fault" && happening.where === "connect") resolve(happening.message);
      };
      keeper = new ThreadedLeaseKeeper({
        connection: { url: "nats://127.0.0.1:1", connectTimeoutMs: 500 },
        bucket,
        runtime: { ...runtime, announce },
        ttlMs: 1000,
      });
      started = keeper.start().then(
        () => "started",
        () => "stopped",
      );
    });
    expect(said).toContain("127.0.0.1:1");
    await keeper?.stop();
    expect(await started).toBe("stopped");
  });
});
