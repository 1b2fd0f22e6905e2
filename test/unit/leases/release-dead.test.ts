import { expect, test } from "vitest";
import { SessionReport } from "../../../schemas/index.ts";
import {
  Bucket,
  bucketStream,
  decode,
  defaultTopology,
  encode,
  ensureTopology,
  leaseKeys,
  subjects,
} from "../../../shared/bus/index.ts";
import { LeaseStore, releaseLeasesOf } from "../../../shared/leases/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, type MemoryBus } from "../../../shared/testing/memory/index.ts";

const names = subjects();
const bucket = names.bucket("leases");
const detail = "its worker process was ended by SIGKILL";
const dead = { holder: "dead-1", bucket, prefix: "" };

async function world() {
  const clock = new SimulatedClock();
  const bus = new MemoryBroker({ clock, seed: 1 }).connect();
  await clock.run(ensureTopology(bus, names, { ...defaultTopology, historyShards: 1 }));
  const store = new LeaseStore(bus, bucket);
  const claim = (sessionId: string, holder: string, attachment = 1) => {
    const session = { instanceId: `of-${sessionId}`, sessionId, attachment };
    const body = encode({ v: 1, holder, session });
    const key = leaseKeys.session(sessionId, attachment);
    const write = { key, claimId: "c", expected: 0, timeoutMs: 1000, body, ttlMs: 60_000 };
    return clock.run(store.write(write));
  };
  const look = (sessionId: string) => clock.run(store.look(leaseKeys.session(sessionId, 1)));
  const told = async () => {
    const reports = (await clock.run(bus.read(names.inboxStream, ">"))) ?? [];
    return reports.map(({ subject, body }) => {
      const report = decode(SessionReport, body);
      return { to: subject.split(".")[2], ...(report.kind === "ok" && report.value) };
    });
  };
  const release = (over: MemoryBus = bus) => clock.run(releaseLeasesOf(over, dead, detail));
  return { clock, bus, claim, look, told, release };
}

test("releases what the dead holder had, tells each instance once, and leaves others alone", async () => {
  const { claim, look, told, release } = await world();
  await claim("a", "dead-1");
  await claim("b", "dead-1", 3);
  await claim("c", "alive-2");
  expect(await release()).toBe(2);
  expect(await release(), "a second one that saw the same death").toBe(0);
  expect(await look("a")).toMatchObject({ kind: "released" });
  expect(await look("c")).toMatchObject({ kind: "held", holder: "alive-2" });
  const report = { kind: "lost", reason: "crashed", detail };
  expect(await told()).toMatchObject([
    { to: "of-a", sessionId: "a", attachment: 1, report },
    { to: "of-b", sessionId: "b", attachment: 3, report },
  ]);
});

test("a last renewal that is stored after the look does not keep the lease", async () => {
  const { clock, bus, claim, look, release } = await world();
  await claim("a", "dead-1");
  const remove = LeaseStore.prototype.remove;
  const body = encode({ v: 1, holder: "dead-1" });
  let late = true;
  LeaseStore.prototype.remove = async function (this: LeaseStore, write) {
    if (late) {
      late = false;
      const { key, expected } = write;
      await this.write({ key, claimId: "c", expected, timeoutMs: 1000, body, ttlMs: 60_000 });
    }
    return remove.call(this, write);
  };
  try {
    expect(await release(bus)).toBe(1);
  } finally {
    LeaseStore.prototype.remove = remove;
  }
  expect(await look("a")).toMatchObject({ kind: "released" });
  await clock.advance(1);
});

test("its seats of a quota are free, and values that cannot be read are left alone", async () => {
  const { clock, bus, release, told } = await world();
  const leases = new Bucket(bus, bucket);
  const session = { instanceId: "i", sessionId: "s", attachment: 1 };
  const seat = (holder: string) => encode({ v: 1, holder, session, leaseTtlMs: 1000 });
  await clock.run(leases.put(leaseKeys.seat("gpu", 1), seat("dead-1")));
  await clock.run(leases.put(leaseKeys.seat("gpu", 2), seat("alive-2")));
  await clock.run(leases.put(leaseKeys.session("junk", 1), new TextEncoder().encode("{")));
  expect(await release()).toBe(0);
  expect(await clock.run(leases.get(leaseKeys.seat("gpu", 1)))).toBeUndefined();
  expect(await clock.run(leases.get(leaseKeys.seat("gpu", 2)))).toBeDefined();
  expect((await clock.run(bus.last(bucketStream(bucket), `$KV.${bucket}.session.junk.1`)))?.body.length).toBe(
    1,
  );
  expect(await told()).toEqual([]);
});
