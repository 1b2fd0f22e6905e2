import { beforeAll, describe, expect, it } from "vitest";
import { Bucket, type BucketEvent, type Bus, type BusState } from "../../shared/bus/index.ts";
import { sleep } from "../../shared/runtime/index.ts";
import { type BusRig, bytes, fresh, Inbox, limits, text, until, workQueue } from "./rig.ts";

/** The server dies without a word and comes back on its data. */
export function outage(rig: () => BusRig): void {
  describe("outage", () => {
    let bus: Bus;
    beforeAll(async () => {
      bus = await rig().connect();
    });

    it("goes on consuming, in order, without loss", async () => {
      const stream = fresh("WQ");
      await bus.ensureStream(workQueue(stream));
      await bus.ensureConsumer({ stream, name: "c", filter: `${stream}.>`, ackWaitMs: 2_000 });
      const inbox = new Inbox({ ack: true });
      const consumption = await bus.consume(stream, "c", { maxMessages: 20, onMessage: inbox.onMessage });
      const send = async (from: number, to: number) => {
        for (let i = from; i < to; i++) {
          // Unknown is asked again under the same id: stored once.
          while (
            (await bus.publish(`${stream}.m`, bytes(`${i}`), { msgId: `m${i}`, timeoutMs: 2_000 })).kind !==
            "stored"
          );
        }
      };
      const sending = send(0, 400);
      await until(rig().clock, () => inbox.all.length > 50);
      await rig().crash(200);
      await sending;
      const seen = () => new Set(inbox.texts);
      await until(rig().clock, () => seen().size === 400);
      const firsts = [...seen()].map(Number);
      expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
      await until(rig().clock, async () => (await bus.streamInfo(stream))?.messages === 0);
      await consumption.stop();
    });

    it("takes consumers along that were kept in memory only, not what they were to hand out", async () => {
      const stream = fresh("WQ");
      await bus.ensureStream(workQueue(stream));
      const spec = { stream, name: "c", filter: `${stream}.>`, ackWaitMs: 60_000, volatile: true };
      await bus.ensureConsumer(spec);
      const before = new Inbox({ ack: false });
      const consumption = await bus.consume(stream, "c", { maxMessages: 20, onMessage: before.onMessage });
      await bus.publish(`${stream}.m`, bytes("held when it died"));
      await until(rig().clock, () => before.all.length === 1);
      await rig().crash(200);
      expect(await consumption.ended).toBe("gone");
      await bus.ensureConsumer(spec);
      const after = new Inbox({ ack: true });
      const next = await bus.consume(stream, "c", { maxMessages: 20, onMessage: after.onMessage });
      await until(rig().clock, () => after.all.length === 1);
      expect(after.texts).toEqual(["held when it died"]);
      await next.stop();
    });

    it("goes on with a view that misses nothing and repeats nothing", async () => {
      const stream = fresh("LM");
      await bus.ensureStream(limits(stream));
      await bus.publish(`${stream}.m`, bytes("first"));
      const seen: string[] = [];
      const view = await bus.tail(stream, `${stream}.>`, {
        existing: true,
        onMessage: (message) => seen.push(text(message.body)),
      });
      const fromNow: string[] = [];
      const later = await bus.tail(stream, `${stream}.>`, {
        existing: false,
        onMessage: (message) => fromNow.push(text(message.body)),
      });
      await until(rig().clock, () => seen.length === 1);
      const expected = ["first"];
      const states: BusState["kind"][] = [];
      const unlisten = bus.onState((state) => states.push(state.kind));
      const server = bus.serverId();
      // Nothing arrived at the second view before the crash: it must know by itself where "new" began.
      await rig().crash(200);
      await until(rig().clock, () => bus.connected());
      expect(bus.serverId()).not.toBe(server);
      expect(states).toEqual(["disconnected", "reconnected"]);
      for (let i = 0; i < 100; i++) {
        if (i === 50) await rig().crash(100);
        while (
          (await bus.publish(`${stream}.m`, bytes(`${i}`), { msgId: `m${i}`, timeoutMs: 2_000 })).kind !==
          "stored"
        );
        expected.push(`${i}`);
      }
      await until(rig().clock, () => seen.length >= expected.length && fromNow.length >= 100);
      expect(seen).toEqual(expected);
      expect(fromNow).toEqual(expected.slice(1));
      unlisten();
      await view.stop();
      await later.stop();
    });

    it("lets leases run out while it is away, and says so afterwards", async () => {
      const name = fresh("kv");
      await bus.ensureStream(
        limits(`KV_${name}`, { subjects: [`$KV.${name}.>`], maxMsgsPerSubject: 1, markerTtlMs: 60_000 }),
      );
      const bucket = new Bucket(bus, name);
      const events: BucketEvent[] = [];
      const watch = await bucket.watch(">", { onEntry: (event) => events.push(event) });
      const short = await bucket.create("short", bytes("1"), { ttlMs: 1_000 });
      const long = await bucket.create("long", bytes("2"), { ttlMs: 60_000 });
      await rig().crash(1_500);
      await until(rig().clock, () => events.some((event) => event.kind === "expired"));
      expect(events.filter((event) => event.kind === "expired").map((event) => event.key)).toEqual(["short"]);
      if (short.kind !== "written" || long.kind !== "written") throw new Error("not written");
      expect(await bucket.update("short", bytes("1"), short.revision, { ttlMs: 1_000 })).toEqual({
        kind: "conflict",
      });
      expect(await bucket.update("long", bytes("2"), long.revision, { ttlMs: 60_000 })).toMatchObject({
        kind: "written",
      });
      await watch.stop();
    });

    it("fires schedules that fell due while it was away, once", async () => {
      const stream = fresh("WQ");
      const { clock } = rig();
      await bus.ensureStream(workQueue(stream, { schedules: true }));
      await bus.publish(`${stream}.at.1`, bytes("1"), {
        schedule: { at: clock.now() + 400, target: `${stream}.due` },
      });
      await rig().crash(800);
      await until(clock, async () => ((await bus.read(stream, `${stream}.due`)) ?? []).length > 0);
      await sleep(clock, 400);
      expect(await bus.read(stream, `${stream}.due`)).toHaveLength(1);
    });

    it("says unknown when nobody answers in time, and waits while it may", async () => {
      const stream = fresh("LM");
      const { clock } = rig();
      await bus.ensureStream(limits(stream));
      const crash = rig().crash(1_500);
      await until(clock, () => !bus.connected());
      expect(await bus.publish(`${stream}.a`, bytes("1"), { timeoutMs: 300 })).toEqual({ kind: "unknown" });
      const waiting = bus.publish(`${stream}.b`, bytes("2"), { timeoutMs: 10_000 });
      const reading = bus.last(stream, `${stream}.zzz`);
      expect(await bus.request("nobody.there", bytes("?"), { timeoutMs: 100 })).toEqual({ kind: "timeout" });
      await crash;
      expect(await waiting).toMatchObject({ kind: "stored" });
      expect(await reading).toBeUndefined();
    });
  });
}
