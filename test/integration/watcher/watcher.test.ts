import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { bucketStream, bucketSubject, encode, leaseKeys } from "../../../shared/bus/index.ts";
import { overMark } from "../../../shared/sessions/index.ts";
import { until } from "../../support/processes/stack.ts";
import { WatcherWorld } from "../../support/worlds/watcher-world.ts";

let world: WatcherWorld;

beforeAll(async () => {
  world = await WatcherWorld.start();
});
afterEach(() => world.settle());
afterAll(() => world?.stop());

const lost = (attachment = 1) =>
  expect.objectContaining({
    attachment,
    report: expect.objectContaining({ kind: "lost", reason: "expired" }),
  });

test("an expiry is told once", async () => {
  const { heard } = await world.watcher("a");
  const owner = await world.owner(1000);
  await world.register("s1", { epoch: 7 });
  await world.attach(owner, "s1");
  await owner.stop();
  await heard("session.lost", ({ sessionId }) => sessionId === "s1");
  expect(await world.told("s1")).toEqual([
    {
      v: 1,
      sessionId: "s1",
      attachment: 1,
      report: { kind: "lost", reason: "expired", detail: "its lease expired", epoch: 7 },
    },
  ]);
});

test("a release is not a loss", async () => {
  const { heard } = await world.watcher("a");
  const owner = await world.owner(1000);
  for (const id of ["s2", "s3"]) await world.register(id);
  const lease = await world.attach(owner, "s2");
  await world.attach(owner, "s3");
  await owner.release(lease);
  await owner.stop();
  await heard("session.lost", ({ sessionId }) => sessionId === "s3");
  expect(await world.told("s2")).toEqual([]);
});

test("what is no longer the session's own attachment is nobody's loss", async () => {
  const { heard, watcher } = await world.watcher("a");
  const owner = await world.owner(1000);
  await world.register("s4", { attachment: 2 });
  await world.register("s5", { phase: "closed" });
  await world.register("s6");
  for (const id of ["s4", "s5", "s6"]) await world.attach(owner, id);
  await owner.stop();
  await heard("session.lost", ({ sessionId }) => sessionId === "s6");
  expect(await world.told("s4")).toEqual([]);
  expect(await world.told("s5")).toEqual([]);
  expect(watcher.describe()).toMatchObject({ acting: true, counters: { superseded: 1, lost: 1 } });
});

test("claimed but not yet told: still in the register as opening, told without an epoch", async () => {
  const { heard } = await world.watcher("a");
  const owner = await world.owner(1000);
  await world.register("s7", { phase: "opening" });
  await world.attach(owner, "s7");
  await owner.stop();
  await heard("session.lost", ({ sessionId }) => sessionId === "s7");
  expect(await world.told("s7")).toEqual([lost()]);
});

test("a session nobody registered is looked for a few times, then kept as a dead letter", async () => {
  const { heard } = await world.watcher("a");
  const owner = await world.owner(1000);
  await world.attach(owner, "nobody");
  await owner.stop();
  expect(await heard("dead.lettered")).toMatchObject({
    what: "expiry",
    id: "nobody",
    code: "session_unregistered",
  });
});

test("an expiry over the tombstone of a session that was over and is forgotten is no dead letter", async () => {
  const { happenings, heard } = await world.watcher("a");
  const record = await world.register("forgotten", { phase: "closed" });
  await world.sessions.delete("forgotten", { headers: overMark(record), ttlMs: 60_000 });
  for (const id of ["forgotten", "unknown"]) {
    const owner = await world.owner(1000);
    await world.attach(owner, id);
    await owner.stop();
    await world.expiry(id);
  }
  await heard("dead.lettered", ({ id }) => id === "unknown");
  expect(happenings.filter(({ kind }) => kind === "dead.lettered")).toHaveLength(1);
});

test("nobody watched while it expired: told once by whoever comes first, and not again by the next", async () => {
  const owner = await world.owner(1000);
  await world.register("s8");
  await world.attach(owner, "s8");
  await owner.stop();
  await world.expiry("s8");
  expect(await world.told("s8")).toEqual([]);
  const a = await world.watcher("a");
  await a.heard("session.lost", ({ sessionId }) => sessionId === "s8");
  await a.stop();
  const b = await world.watcher("b");
  const other = await world.owner(1000);
  await world.register("s9");
  await world.attach(other, "s9");
  await other.stop();
  await b.heard("session.lost", ({ sessionId }) => sessionId === "s9");
  expect(await world.told("s8")).toEqual([lost()]);
});

test("two run, one acts; when it stops the other takes over", async () => {
  const a = await world.watcher("a");
  const b = await world.watcher("b");
  await b.heard("watcher.standby");
  expect([a.watcher.acting, b.watcher.acting]).toEqual([true, false]);
  await a.stop();
  await b.heard("watcher.acting");
  expect(b.watcher.acting).toBe(true);
});

test("reconcile finds what its marker did not tell, and tells it once", async () => {
  const owner = await world.owner(1000);
  await world.register("s10");
  await world.register("s11");
  await world.attach(owner, "s10");
  await world.attach(owner, "s11");
  await owner.stop();
  await Promise.all([world.expiry("s10"), world.expiry("s11")]);
  // One marker purged by mistake, one session that never had a lease.
  await world.bus.purge(leaseStream, leaseSubject("s10"), Number.MAX_SAFE_INTEGER);
  await world.register("s12");
  const a = await world.watcher("a", { reconcileEveryMs: 100 });
  await a.heard("session.lost", ({ sessionId }) => sessionId === "s10");
  await a.heard("session.lost", ({ sessionId }) => sessionId === "s12");
  await a.stop();
  const b = await world.watcher("b", { reconcileEveryMs: 100 });
  await world.register("s13");
  await b.heard("session.lost", ({ sessionId }) => sessionId === "s13");
  for (const id of ["s10", "s11", "s12"]) expect(await world.told(id)).toEqual([lost()]);
});

test("a close that its holder did not live to take is purged", async () => {
  const owner = await world.owner(1000);
  const last = { workerId: "gone-2" as never, epoch: 1, from: 1, to: 2, end: "closed" } as const;
  await world.register("s17", { phase: "closed", owners: [last] });
  await world.attach(owner, "s17");
  await world.bus.publish(world.names.sessionWork("gone-2", "s17"), encode({}));
  const a = await world.watcher("a");
  await owner.stop();
  await a.heard("work.purged", ({ workerId, messages }) => workerId === "gone-2" && messages === 1);
  expect(await world.told("s17")).toEqual([]);
});

test("the work of a dead owner is purged; that of a living one is left alone until it is gone", async () => {
  const owner = await world.owner(1000);
  const workers = world.names.bucket("workers");
  for (const [id, workerId] of [
    ["s14", "gone-1"],
    ["s15", "slow-1"],
  ] as const) {
    await world.register(id, { epoch: 1, workerId: workerId as never });
    await world.attach(owner, id);
    await world.bus.publish(world.names.sessionWork(workerId, id), encode({}));
  }
  await world.bus.publish(bucketSubject(workers, "slow-1"), encode({}), { ttlMs: 3000 });
  const a = await world.watcher("a", { reconcileEveryMs: 200 });
  await owner.stop();
  await a.heard("work.purged", ({ workerId, messages }) => workerId === "gone-1" && messages === 1);
  // By a turn that had begun before its instance got the loss.
  for (let n = 0; n < 2; n++)
    await world.bus.publish(world.names.sessionWork("gone-1", "s14"), encode({ late: n }));
  await a.heard("session.lost", ({ sessionId }) => sessionId === "s15");
  expect(a.happenings).not.toContainEqual(
    expect.objectContaining({ kind: "work.purged", workerId: "slow-1" }),
  );
  await a.heard("work.purged", ({ workerId, sessionId }) => workerId === "slow-1" && sessionId === "s15");
  await until(
    "nothing is left of what was sent to them",
    async () => (await world.bus.read(world.names.sessionsStream, world.names.allSessionWork))?.length === 0,
  );
});

const leaseStream = bucketStream("leases");
const leaseSubject = (sessionId: string) => bucketSubject("leases", leaseKeys.session(sessionId, 1));
