/** Quotas over the whole installation, judged from the lease stream. */
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { QuotaSeat } from "../../../schemas/index.ts";
import type { WorkerFaultPoint } from "../../../services/worker/fault-points.ts";
import { Bucket, decode, leaseKeys } from "../../../shared/bus/index.ts";
import { call, defineSession } from "../../../shared/definitions/index.ts";
import { LeaseLog } from "../../../shared/verify/index.ts";
import { startWorkerProcess } from "../../support/processes/worker-process.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

let rig: SessionRig;
let leases: LeaseLog;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
beforeEach(async () => {
  leases = await LeaseLog.start(rig);
});
afterEach(async () => {
  await rig.stopWorkers();
  await rig.bus.purge(rig.names.claimsStream, ">", Number.MAX_SAFE_INTEGER);
  await leases[Symbol.asyncDispose]();
});

let serial = 0;
const fresh = (): string => `q${++serial}`;
const freshOnes = (n: number): string[] => Array.from({ length: n }, fresh);

const calls = { ping: call({ run: () => "pong" }) };
const scarce = defineSession("scarce", { maxTotal: 2, leaseTtl: "1s", init: () => ({}), calls });
const rare = defineSession("rare", { maxTotal: 4, init: () => ({}), calls });
const plain = defineSession("plain", { init: () => ({}), calls });

const seen = (sessionId: string) =>
  rig.happenings.flatMap((one) => (one.kind === "claim.seen" && one.sessionId === sessionId ? [one] : []));

const seats = async (): Promise<QuotaSeat[]> => {
  const taken: QuotaSeat[] = [];
  const bucket = new Bucket(rig.bus, rig.names.bucket("leases"));
  for await (const { value } of bucket.entries(leaseKeys.allSeats)) {
    const seat = decode(QuotaSeat, value);
    if (seat.kind === "ok") taken.push(seat.value);
  }
  return taken;
};
const untilNoSeats = () => rig.poll("all seats free", async () => (await seats()).length === 0);

const among = (ids: readonly string[]) => leases.mostAtOnce(({ sessionId }) => ids.includes(sessionId));

/** Each is closed as soon as it is active, until all have had their turn. */
const serveAll = async (ids: readonly string[], timeoutMs: number): Promise<void> => {
  await Promise.all(
    ids.map(async (id) => {
      const { on } = await rig.heard(id, "activated", 1, timeoutMs);
      await rig.work(on.workerId, id, { kind: "close", epoch: on.epoch } as never);
    }),
  );
};

describe("a quota of a type", () => {
  it("holds exactly under a race of twenty workers, and everybody's turn comes", async () => {
    const env = { WORKER_MAX_SESSIONS: "5" };
    await Promise.all(Array.from({ length: 20 }, () => rig.worker({ rare }, { env, alone: true })));
    const ids = freshOnes(80);
    await Promise.all(ids.map((id) => rig.claim("rare", id)));
    await serveAll(ids, 60_000);
    expect(among(ids)).toBe(4);
    await untilNoSeats();
    await rig.untilNoClaims();
  }, 90_000);

  it("is found out without pulling claims, and said in words", async () => {
    const timing = { restMinMs: 20_000, restMaxMs: 20_000 };
    const [one] = [await rig.worker({ rare }, { timing }), await rig.worker({ rare }, { timing })];
    for (const id of freshOnes(4)) await rig.open("rare", id);
    const waiting = freshOnes(20);
    for (const id of waiting) await rig.claim("rare", id);
    const refused = await rig.happening(
      "claim.seen",
      (one) => waiting.includes(one.sessionId) && one.verdict === "refused",
    );
    expect(refused.why).toBe("type rare is at 4 of 4 in the whole installation (maxTotal)");
    await rig.poll("a register that says so", async () => {
      const entry = await rig.bus.last("KV_workers", `$KV.workers.${one?.workerId}`);
      return new TextDecoder().decode(entry?.body).includes('"rare":{"used":4,"max":4}');
    });
    // CLAIM-4: two workers looked at few of twenty, and not over and over.
    expect(waiting.flatMap(seen).length).toBeLessThan(10);
  });

  it("gives a seat that comes free at another worker to a waiting session at once", async () => {
    // Claims come again after 20 s, leases expire after 15 s, and the workers do not know each other: only the seat decides.
    const timing = { restMinMs: 20_000, restMaxMs: 20_000 };
    const one = await rig.worker({ rare }, { timing, alone: true });
    const held = freshOnes(4);
    for (const id of held) await rig.open("rare", id);
    await rig.worker({ rare }, { timing, alone: true });
    const waiting = freshOnes(8);
    for (const id of waiting) await rig.claim("rare", id);
    await rig.happening("claim.seen", (one) => waiting.includes(one.sessionId) && one.verdict === "refused");
    const [id = ""] = held;
    const { on } = await rig.heard(id, "activated");
    const stopped = rig.stopWorker(one);
    await rig.heard(id, "lost");
    const next = () =>
      rig.told.find((told) => waiting.includes(told.sessionId) && told.report.kind === "activated");
    await rig.until("the next one", next);
    await stopped;
    expect(among([...held, ...waiting])).toBe(4);
    expect(on.workerId).toBe(one.workerId);
  });

  it("counts a session until its lease is given back, not until its seat is", async () => {
    await rig.worker({ rare });
    const id = fresh();
    const on = await rig.open("rare", id);
    await rig.work(on.workerId, id, { kind: "close", epoch: on.epoch } as never);
    await untilNoSeats();
    const lease = await rig.bus.last("KV_leases", `$KV.leases.${leaseKeys.session(id, 1)}`);
    const ends: number[] = [];
    for await (const { seq } of rig.bus.lastPerSubject("KV_leases", "$KV.leases.quota.>")) ends.push(seq);
    expect(lease?.headers["KV-Operation"]).toBe("PURGE");
    expect(Math.max(...ends)).toBeGreaterThan(lease?.seq ?? Number.POSITIVE_INFINITY);
  });

  it("does not spin while it is reached", async () => {
    await rig.worker({ scarce });
    for (const id of freshOnes(2)) await rig.open("scarce", id);
    const waiting = freshOnes(100);
    // From before the first of them: however late this is noticed, eleven cannot have been refused sooner.
    const startedAt = performance.now();
    for (const id of waiting) await rig.claim("scarce", id);
    const refused = () => waiting.flatMap(seen).length;
    await rig.until("eleven refusals", () => (refused() > 10 ? true : undefined));
    // One at a time, each resting 100 ms or more.
    expect(performance.now() - startedAt).toBeGreaterThan(500);
  });

  it("costs nothing where there is none", async () => {
    await rig.worker({ plain });
    await rig.open("plain", fresh());
    const written = await rig.bus.read("KV_leases", `$KV.leases.${leaseKeys.seat("plain", 1)}`);
    expect(written).toEqual([]);
    const views = await rig.bus.consumers("KV_leases");
    expect(views.filter(({ filter }) => filter.includes("quota"))).toEqual([]);
  });
});

describe("a quota over all sessions", () => {
  it("counts all types together, beside those of the types", async () => {
    const env = { WORKER_MAX_TOTAL_SESSIONS: "3" };
    const apps = { plain, scarce };
    await Promise.all(Array.from({ length: 6 }, () => rig.worker(apps, { env, alone: true })));
    const [ofPlain, ofScarce] = [freshOnes(15), freshOnes(15)];
    await Promise.all([
      ...ofPlain.map((id) => rig.claim("plain", id)),
      ...ofScarce.map((id) => rig.claim("scarce", id)),
    ]);
    await serveAll([...ofPlain, ...ofScarce], 60_000);
    expect(among([...ofPlain, ...ofScarce])).toBe(3);
    expect(among(ofScarce)).toBeLessThanOrEqual(2);
    await untilNoSeats();
  }, 90_000);

  it("says so by its own name", async () => {
    await rig.worker({ plain }, { env: { WORKER_MAX_TOTAL_SESSIONS: "1" } });
    await rig.open("plain", fresh());
    const id = fresh();
    await rig.claim("plain", id);
    const { why } = await rig.happening("claim.seen", (one) => one.sessionId === id);
    expect(why).toBe(
      "all types together are at 1 of 1 in the whole installation (WORKER_MAX_TOTAL_SESSIONS)",
    );
  });
});

describe("a worker that dies", () => {
  const appPath = fileURLToPath(new URL("../../support/apps/quota-app.ts", import.meta.url));

  it("keeps its seats as long as its leases live, and no longer", async () => {
    // At its own cap: no claim rests with it when it dies.
    const victim = await startWorkerProcess(rig.nats.url, appPath, { WORKER_MAX_SESSIONS: "2" });
    const [held, waiting] = [freshOnes(2), freshOnes(2)];
    for (const id of held) await rig.open("scarce", id);
    await rig.worker({ scarce });
    for (const id of waiting) await rig.claim("scarce", id);
    await rig.happening("claim.seen", (one) => waiting.includes(one.sessionId) && one.verdict === "refused");
    victim.kill("SIGKILL");
    await victim.exited;
    for (const id of waiting) await rig.heard(id, "activated");
    expect(among([...held, ...waiting])).toBe(2);
    const holders = (await seats()).map(({ session }) => session.sessionId);
    expect(holders.sort()).toEqual([...waiting].sort());
  });

  const points: WorkerFaultPoint[] = [
    "claim.before_lease",
    "claim.after_lease",
    "close.before_release",
    "close.after_release",
  ];
  it.each(points)("at %s loses no seat for ever", async (point) => {
    const victim = await startWorkerProcess(rig.nats.url, appPath, { WORKER_FAULT: `${point}:1` });
    const [first, second] = [fresh(), fresh()];
    await rig.claim("scarce", first);
    if (point.startsWith("close")) {
      const { on } = await rig.heard(first, "activated");
      await rig.work(on.workerId, first, { kind: "close", epoch: on.epoch } as never);
    }
    expect(await victim.exited).toBe("SIGKILL");
    expect(await seats()).toHaveLength(1);
    await rig.bus.purge(rig.names.claimsStream, ">", Number.MAX_SAFE_INTEGER);
    await rig.worker({ scarce });
    const others = [second, fresh()];
    for (const id of others) await rig.claim("scarce", id);
    for (const id of others) await rig.heard(id, "activated");
    expect(among([first, ...others])).toBe(2);
    expect((await seats()).map(({ session }) => session.sessionId).sort()).toEqual(others.sort());
  });
});

describe("an outage of the bus longer than the TTL (S14)", () => {
  it("leaves seats to the owners that come back, however many wait", async () => {
    await rig.worker({ scarce });
    const [held, waiting] = [freshOnes(2), fresh()];
    for (const id of held) await rig.open("scarce", id);
    await rig.worker({ scarce });
    await rig.claim("scarce", waiting);
    await rig.happening("claim.seen", (one) => one.sessionId === waiting && one.verdict === "refused");
    await rig.nats.kill();
    for (const id of held) await rig.happening("lease.lost", (one) => one.key === `session.${id}.1`);
    await rig.nats.restart();
    for (const id of held) expect(await rig.heard(id, "activated", 2)).toMatchObject({ warm: true });
    expect(rig.kinds(waiting)).toEqual([]);
    const [id = ""] = held;
    const { on } = await rig.heard(id, "activated", 2);
    await rig.work(on.workerId, id, { kind: "close", epoch: on.epoch } as never);
    await rig.heard(waiting, "activated");
    expect((await seats()).map(({ session }) => session.sessionId).sort()).toEqual([held[1], waiting].sort());
  });
});
