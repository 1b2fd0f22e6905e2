import { beforeAll, describe, expect, it } from "vitest";
import {
  type Bus,
  bucketStream,
  bucketSubject,
  defaultTopology,
  ensureTopology,
  subjects,
} from "../../shared/bus/index.ts";
import { ownHistory, topology } from "../../shared/bus/topology.ts";
import { hash32, sleep } from "../../shared/runtime/index.ts";
import { type BusRig, bytes, fresh, limits, text, until, workQueue } from "./rig.ts";

const fault = (kind: string, code: string) => expect.objectContaining({ name: "Fault", kind, code });

export function storage(rig: () => BusRig): void {
  describe("storage", () => {
    let bus: Bus;
    beforeAll(async () => {
      bus = await rig().connect();
    });

    it("creates a stream once, also when many ask at once", async () => {
      const name = fresh("ST");
      const first = await bus.ensureStream(limits(name));
      expect(first.created).toBe(true);
      await sleep(rig().clock, 20);
      await Promise.all(
        Array.from({ length: 5 }, async () =>
          expect(await bus.ensureStream(limits(name))).toEqual({ created: false }),
        ),
      );
      expect(await bus.streamInfo(name)).toMatchObject({ name, messages: 0, lastSeq: 0, consumers: 0 });
      expect(await bus.streamNames(`${name}.x`)).toEqual([name]);
      expect(await bus.streamCount()).toBeGreaterThan(0);
      expect((await bus.account()).streams).toBeGreaterThan(0);
      expect(await bus.deleteStream(name)).toBe(true);
      expect(await bus.deleteStream(name)).toBe(false);
      expect(await bus.streamInfo(name)).toBeUndefined();
    });

    it("refuses a stream that exists with another meaning", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name));
      await expect(bus.ensureStream(workQueue(name))).rejects.toEqual(fault("config", "stream_mismatch"));
      await expect(bus.ensureStream(limits(fresh("ST"), { subjects: [`${name}.a`] }))).rejects.toEqual(
        fault("config", "subjects_taken"),
      );
    });

    it("creates the whole topology, twice, with and without a prefix", async () => {
      for (const prefix of ["", "acme"]) {
        const names = subjects(prefix);
        await ensureTopology(bus, names, defaultTopology);
        await ensureTopology(bus, names, defaultTopology);
        const outcome = await bus.publish(names.start("i1", "hello"), bytes("{}"));
        expect(outcome.kind).toBe("stored");
      }
    });

    it("defect 3: a stream or bucket created anew never gives a sequence of the one before again", async () => {
      const names = subjects("anew");
      const twice = [
        { stream: names.inboxStream, subject: names.signal("i1", "go") },
        { stream: bucketStream(names.bucket("leases")), subject: bucketSubject(names.bucket("leases"), "k") },
        { stream: names.ownHistoryStream("i1"), subject: names.ownHistory("i1") },
      ];
      const last = new Map<string, number>();
      for (let round = 0; round < 3; round++) {
        await ensureTopology(bus, names, defaultTopology);
        await bus.ensureStream(ownHistory(names, "i1", 1));
        for (const { stream, subject } of twice) {
          for (let n = 0; n < 20; n++) {
            const stored = await bus.publish(subject, bytes("x"));
            if (stored.kind !== "stored") throw new Error(stored.kind);
            expect(stored.seq).toBeGreaterThan(last.get(stream) ?? 0);
            expect(Number.isSafeInteger(stored.seq + 2 ** 40)).toBe(true);
            last.set(stream, stored.seq);
          }
          expect((await bus.streamInfo(stream))?.lastSeq).toBe(last.get(stream));
          await bus.deleteStream(stream);
        }
      }
    });

    it("stores only on top of what was expected", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name));
      expect(await bus.publish(`${name}.a`, bytes("1"), { expectLastSeq: 0 })).toEqual({
        kind: "stored",
        seq: 1,
        duplicate: false,
      });
      expect(await bus.publish(`${name}.a`, bytes("2"), { expectLastSeq: 0 })).toEqual({ kind: "conflict" });
      expect(await bus.publish(`${name}.b`, bytes("3"), { expectLastSeq: 0 })).toMatchObject({ seq: 2 });
      expect(await bus.publish(`${name}.a`, bytes("4"), { expectLastSeq: 1 })).toMatchObject({ seq: 3 });
      expect(await bus.publish(`${name}.a`, bytes("5"), { expectLastSeq: 2 })).toEqual({ kind: "conflict" });
    });

    it("lets one of many win the same place", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name));
      const other = await rig().connect();
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          (i % 2 ? bus : other).publish(`${name}.a`, bytes(`${i}`), { expectLastSeq: 0 }),
        ),
      );
      expect(outcomes.filter((outcome) => outcome.kind === "stored")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.kind === "conflict")).toHaveLength(39);
      await other.close();
    });

    it("knows a message id again, but looks at the fence first", async () => {
      const name = fresh("ST");
      await bus.ensureStream(workQueue(name));
      const options = { msgId: "m1", expectLastSeq: 0 };
      expect(await bus.publish(`${name}.a`, bytes("1"), options)).toMatchObject({ seq: 1, duplicate: false });
      expect(await bus.publish(`${name}.a`, bytes("1"), options)).toEqual({ kind: "conflict" });
      for (const subject of ["a", "b"]) {
        const again = await bus.publish(`${name}.${subject}`, bytes("2"), { msgId: "m1" });
        expect(again).toEqual({ kind: "stored", seq: 1, duplicate: true });
      }
      expect((await bus.streamInfo(name))?.messages).toBe(1);
    });

    it("reads a subject or a filter, in order, from a place on", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name));
      for (let i = 1; i <= 6; i++) {
        await bus.publish(`${name}.${i % 2 ? "odd" : "even"}`, bytes(`${i}`), { headers: { "X-N": `${i}` } });
      }
      const odd = await bus.read(name, `${name}.odd`);
      expect(odd?.map((message) => [message.seq, text(message.body), message.headers])).toEqual([
        [1, "1", { "X-N": "1" }],
        [3, "3", { "X-N": "3" }],
        [5, "5", { "X-N": "5" }],
      ]);
      expect(Math.abs((odd?.[0]?.at ?? 0) - rig().clock.now())).toBeLessThan(60_000);
      expect((await bus.read(name, `${name}.>`, 4))?.map((message) => message.seq)).toEqual([4, 5, 6]);
      expect((await bus.read(name, `${name}.*`, 1, 2))?.length).toBeGreaterThanOrEqual(2);
      expect(await bus.read(name, `${name}.none`)).toEqual([]);
      expect(await bus.read(fresh("NONE"), "x")).toBeUndefined();
    });

    it("reads more than one page", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name));
      const count = 5_200;
      await Promise.all(Array.from({ length: count }, (_, i) => bus.publish(`${name}.a`, bytes(`${i}`))));
      const all = await bus.read(name, `${name}.a`);
      expect(all?.map((message) => text(message.body))).toEqual(
        Array.from({ length: count }, (_, i) => `${i}`),
      );
    });

    it("finds the last message of a subject", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name));
      await bus.publish(`${name}.a`, bytes("1"));
      await bus.publish(`${name}.a`, bytes("2"), { headers: { "X-A": "b" } });
      await bus.publish(`${name}.b`, new Uint8Array(0));
      for (const leader of [false, true]) {
        const last = await bus.last(name, `${name}.a`, { leader });
        expect(last).toMatchObject({ subject: `${name}.a`, seq: 2, headers: { "X-A": "b" } });
        expect(text(last?.body ?? new Uint8Array(0))).toBe("2");
        expect((await bus.last(name, `${name}.b`, { leader }))?.body.length).toBe(0);
        expect(await bus.last(name, `${name}.none`, { leader })).toBeUndefined();
        expect((await bus.last(name, `${name}.>`, { leader }))?.subject).toBe(`${name}.b`);
        expect(await bus.last(fresh("NONE"), "a", { leader })).toBeUndefined();
      }
    });

    it("lists the last message of each subject", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name));
      for (const [subject, body] of [
        ["a", "1"],
        ["b", "2"],
        ["a", "3"],
        ["c.d", "4"],
      ]) {
        await bus.publish(`${name}.${subject}`, bytes(body ?? ""));
      }
      const found: string[] = [];
      for await (const message of bus.lastPerSubject(name, `${name}.>`)) found.push(text(message.body));
      expect(found).toEqual(["2", "3", "4"]);
      const none: string[] = [];
      for await (const message of bus.lastPerSubject(name, `${name}.zzz`)) none.push(text(message.body));
      expect(none).toEqual([]);
    });

    it("deletes and purges, where that is allowed", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name));
      for (let i = 0; i < 4; i++) await bus.publish(`${name}.${i % 2}`, bytes(`${i}`));
      expect(await bus.deleteMessage(name, 1)).toBe(true);
      expect(await bus.deleteMessage(name, 1)).toBe(false);
      await bus.publish(`${name}.1`, bytes("4"));
      expect(await bus.purge(name, `${name}.1`, 4), "none but those seen").toBe(2);
      expect(await bus.purge(name, `${name}.1`, 4)).toBe(0);
      expect(await bus.purge(name, `${name}.1`, Number.MAX_SAFE_INTEGER)).toBe(1);
      expect(await bus.purge(name, `${name}.1`, Number.MAX_SAFE_INTEGER)).toBe(0);
      expect((await bus.streamInfo(name))?.messages).toBe(1);
      const hard = fresh("ST");
      await bus.ensureStream(limits(hard, { immutable: true }));
      await bus.publish(`${hard}.a`, bytes("1"));
      expect(await bus.deleteMessage(hard, 1)).toBe(false);
      await expect(bus.purge(hard, `${hard}.a`, Number.MAX_SAFE_INTEGER)).rejects.toEqual(
        fault("contract", "immutable"),
      );
      expect((await bus.streamInfo(hard))?.messages).toBe(1);
    });

    it("keeps so many messages of a subject", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name, { maxMsgsPerSubject: 1 }));
      for (let i = 1; i <= 3; i++) await bus.publish(`${name}.a`, bytes(`${i}`));
      await bus.publish(`${name}.b`, bytes("4"));
      expect((await bus.read(name, `${name}.>`))?.map((message) => message.seq)).toEqual([3, 4]);
    });

    it("refuses what cannot work, by code", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name, { markerTtlMs: 60_000 }));
      const big = new Uint8Array(bus.maxPayloadBytes + 1);
      await expect(bus.publish(`${name}.a`, big)).rejects.toEqual(fault("contract", "payload_too_large"));
      for (const ttlMs of [1500, 500, 0, -1000]) {
        await expect(bus.publish(`${name}.a`, bytes("1"), { ttlMs })).rejects.toEqual(
          fault("contract", "invalid_ttl"),
        );
      }
      await expect(
        bus.publish(`${name}.a`, bytes("1"), { headers: { A: "b\r\nNats-Rollup: all" } }),
      ).rejects.toEqual(fault("contract", "invalid_header"));
      await expect(bus.publish(fresh("nowhere"), bytes("1"))).rejects.toEqual(
        fault("transient", "no_stream"),
      );
      const plain = fresh("ST");
      await bus.ensureStream(limits(plain));
      await expect(bus.publish(`${plain}.a`, bytes("1"), { ttlMs: 1000 })).rejects.toEqual(
        fault("config", "ttl_disabled"),
      );
      expect((await bus.streamInfo(name))?.messages).toBe(0);
    });

    it("lets a purge with a life of its own go without a marker", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name, { maxMsgsPerSubject: 1, markerTtlMs: 60_000 }));
      const subject = `${name}.a`;
      await bus.publish(subject, bytes("x"));
      await bus.publish(subject, bytes(""), { ttlMs: 1000, headers: { "KV-Operation": "PURGE" } });
      await until(rig().clock, async () => (await bus.last(name, subject)) === undefined);
      expect((await bus.streamInfo(name))?.lastSeq).toBe(2);
    });

    it("lets messages expire and leaves a marker", async () => {
      const name = fresh("ST");
      await bus.ensureStream(limits(name, { maxMsgsPerSubject: 1, markerTtlMs: 60_000 }));
      const began = rig().clock.monotonic();
      await bus.publish(`${name}.a`, bytes("1"), { ttlMs: 1000 });
      await bus.publish(`${name}.b`, bytes("2"));
      let last = await bus.last(name, `${name}.a`);
      expect(last?.headers["Nats-Marker-Reason"]).toBeUndefined();
      await until(rig().clock, async () => {
        last = await bus.last(name, `${name}.a`);
        return last?.headers["Nats-Marker-Reason"] === "MaxAge";
      });
      expect(last).toMatchObject({ seq: 3 });
      expect(last?.body.length).toBe(0);
      expect(rig().clock.monotonic() - began).toBeGreaterThanOrEqual(990);
      expect((await bus.last(name, `${name}.b`))?.seq).toBe(2);
    });

    it("renews a life with its fence, and not after the end", async () => {
      const name = fresh("ST");
      const { clock } = rig();
      await bus.ensureStream(limits(name, { maxMsgsPerSubject: 1, markerTtlMs: 60_000 }));
      let seq = 0;
      const renew = async () => {
        const outcome = await bus.publish(`${name}.a`, bytes("x"), { ttlMs: 1000, expectLastSeq: seq });
        if (outcome.kind === "stored") seq = outcome.seq;
        return outcome.kind;
      };
      for (let i = 0; i < 3; i++) {
        expect(await renew()).toBe("stored");
        await sleep(clock, 600);
      }
      expect((await bus.last(name, `${name}.a`))?.seq).toBe(3);
      await until(clock, async () => (await bus.last(name, `${name}.a`))?.seq === 4);
      expect(await renew()).toBe("conflict");
    });

    it("sorts the inbox into partitions, fired timers included", async () => {
      const prefix = fresh("pre");
      const names = subjects(prefix);
      const stream = names.inboxStream;
      const made = topology(names, { partitions: 16, historyShards: 1, replicas: 1 });
      for (const name of [names.timersStream, stream]) {
        const spec = made.find((one) => one.name === name);
        if (spec) await bus.ensureStream(spec);
      }
      const part = (id: string) => hash32(id) % 16;
      for (let i = 0; i < 50; i++)
        await bus.publish(names.signal(`inst-${i}`, "go"), bytes("{}"), { msgId: `s${i}` });
      expect(await bus.publish(names.signal("inst-0", "go"), bytes("{}"), { msgId: "s0" })).toMatchObject({
        duplicate: true,
      });
      const stored = await bus.read(stream, `${prefix}.inbox.>`);
      expect(stored?.map((message) => message.subject)).toEqual(
        Array.from({ length: 50 }, (_, i) => `${prefix}.inbox.${part(`inst-${i}`)}.inst-${i}.signal.go`),
      );
      const at = rig().clock.now() + 400;
      const target = names.fired(names.verb("inst-7", "wake"));
      await bus.publish(names.timer("inst-7", 1, 3), bytes("wake"), {
        schedule: { at, target, keptMs: 60_000 },
        msgId: "t1",
      });
      const woken = `${prefix}.inbox.${part("inst-7")}.inst-7.wake`;
      await until(rig().clock, async () => (await bus.last(stream, woken)) !== undefined);
      const fired = await bus.last(stream, woken);
      expect(fired?.at).toBeGreaterThanOrEqual(at - 1);
      expect(text(fired?.body ?? new Uint8Array(0))).toBe("wake");
      expect(await bus.last(names.timersStream, names.timer("inst-7", 1, 3))).toBeUndefined();
    });

    it("replaces, cancels and refuses schedules", async () => {
      const name = fresh("ST");
      const { clock } = rig();
      await bus.ensureStream(workQueue(name, { schedules: true }));
      const plan = (subject: string, inMs: number, target: string) =>
        bus.publish(`${name}.at.${subject}`, bytes(subject), {
          schedule: { at: clock.now() + inMs, target },
        });
      await plan("a", 200, `${name}.due.first`);
      await plan("a", 400, `${name}.due.second`);
      await plan("b", 300, `${name}.due.cancelled`);
      await plan("c", -5000, `${name}.due.past`);
      expect(await bus.purge(name, `${name}.at.b`, Number.MAX_SAFE_INTEGER)).toBe(1);
      await until(clock, async () => (await bus.last(name, `${name}.due.second`)) !== undefined);
      await sleep(clock, 300);
      const due = await bus.read(name, `${name}.due.*`);
      expect(due?.map((message) => message.subject).sort()).toEqual([
        `${name}.due.past`,
        `${name}.due.second`,
      ]);
      await expect(plan("d", 100, "somewhere.else")).rejects.toEqual(fault("contract", "invalid_schedule"));
    });
  });
}
