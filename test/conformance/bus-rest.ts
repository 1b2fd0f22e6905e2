import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  Bucket,
  type BucketEvent,
  type Bus,
  encode,
  startMicroService,
  TypedBucket,
} from "../../shared/bus/index.ts";
import { type Happening, silent, sleep, systemRandom } from "../../shared/runtime/index.ts";
import { blobKeys } from "../support/nats/blob-keys.ts";
import { type BusRig, bytes, fresh, limits, text, until } from "./rig.ts";

const bucketSpec = (name: string, markerTtlMs = 60_000) =>
  limits(`KV_${name}`, { subjects: [`$KV.${name}.>`], maxMsgsPerSubject: 1, markerTtlMs });

export function theRest(rig: () => BusRig): void {
  describe("plain messages, blobs and buckets", () => {
    let bus: Bus;
    let other: Bus;
    beforeAll(async () => {
      bus = await rig().connect();
      other = await rig().connect();
    });
    afterAll(async () => {
      await other.close();
    });

    it("asks and answers", async () => {
      const subject = fresh("svc");
      expect(await bus.request(subject, bytes("?"), { timeoutMs: 2_000 })).toEqual({ kind: "nobody" });
      const service = await other.subscribe(`${subject}.*`, {}, (message) => {
        if (message.subject.endsWith("silent")) return;
        message.reply?.(bytes(`${text(message.body)}!`), { "X-Was": message.headers["X-Is"] ?? "" });
      });
      const reply = await bus.request(`${subject}.a`, bytes("hi"), {
        timeoutMs: 2_000,
        headers: { "X-Is": "y" },
      });
      expect(reply.kind === "reply" && [text(reply.body), reply.headers]).toEqual(["hi!", { "X-Was": "y" }]);
      expect(await bus.request(`${subject}.silent`, bytes("hi"), { timeoutMs: 100 })).toEqual({
        kind: "timeout",
      });
      await service.stop();
      expect(await bus.request(`${subject}.a`, bytes("hi"), { timeoutMs: 2_000 })).toEqual({
        kind: "nobody",
      });
    });

    it("gives a queue's messages to one of its members, and to everybody else", async () => {
      const subject = fresh("news");
      const got = { one: 0, two: 0, alone: 0 };
      const subscriptions = [
        await bus.subscribe(subject, { queue: "q" }, () => got.one++),
        await other.subscribe(subject, { queue: "q" }, () => got.two++),
        await other.subscribe(subject, {}, (message) => {
          got.alone++;
          expect(message.reply).toBeUndefined();
        }),
      ];
      for (let i = 0; i < 60; i++) bus.send(subject, bytes(`${i}`));
      await until(rig().clock, () => got.alone === 60 && got.one + got.two === 60);
      expect(Math.min(got.one, got.two)).toBeGreaterThan(5);
      for (const subscription of subscriptions) await subscription.stop();
    });

    it("survives a handler that throws", async () => {
      const subject = fresh("boom");
      let calls = 0;
      const subscription = await bus.subscribe(subject, {}, () => {
        calls++;
        if (calls === 1) throw new Error("thrown by the test");
      });
      other.send(subject, bytes("1"));
      other.send(subject, bytes("2"));
      await until(rig().clock, () => calls === 2);
      await subscription.stop();
    });

    it("keeps blobs", async () => {
      const owner = fresh("own");
      const big = new Uint8Array(700_001).map((_, i) => (i * 31) % 251);
      await bus.blobs.put(`${owner}/big`, big);
      await bus.blobs.put(`${owner}/empty`, new Uint8Array(0));
      await bus.blobs.put(`${owner}x/other`, bytes("other"));
      expect(
        Buffer.compare(Buffer.from((await other.blobs.get(`${owner}/big`)) ?? []), Buffer.from(big)),
      ).toBe(0);
      expect((await other.blobs.get(`${owner}/empty`))?.length).toBe(0);
      expect((await blobKeys(other.blobs, `${owner}/`)).sort()).toEqual([`${owner}/big`, `${owner}/empty`]);
      await other.blobs.put(`${owner}/big`, bytes("small"));
      expect(text((await bus.blobs.get(`${owner}/big`)) ?? bytes(""))).toBe("small");
      const [seen] = await bus.blobs.list(`${owner}/big`);
      expect(await bus.blobs.touch(`${owner}/big`)).toBe(true);
      expect(await bus.blobs.delete(`${owner}/big`, seen?.seq), "touched since").toBe(false);
      expect(text((await bus.blobs.get(`${owner}/big`)) ?? bytes(""))).toBe("small");
      expect(await bus.blobs.delete(`${owner}/big`)).toBe(true);
      expect(await bus.blobs.delete(`${owner}/big`)).toBe(false);
      expect(await bus.blobs.touch(`${owner}/big`)).toBe(false);
      expect(await bus.blobs.get(`${owner}/big`)).toBeUndefined();
      expect(await bus.blobs.get(`${owner}/never`)).toBeUndefined();
      expect(await blobKeys(bus.blobs, `${owner}/`)).toEqual([`${owner}/empty`]);
    });

    it("writes a bucket with its fences", async () => {
      const name = fresh("kv");
      await bus.ensureStream(bucketSpec(name));
      const bucket = new Bucket(bus, name);
      const rival = new Bucket(other, name);
      const created = await bucket.create("a.b", bytes("1"));
      expect(created).toEqual({ kind: "written", revision: 1 });
      expect(await rival.create("a.b", bytes("2"))).toEqual({ kind: "conflict" });
      expect(await rival.update("a.b", bytes("2"), 1)).toEqual({ kind: "written", revision: 2 });
      expect(await bucket.update("a.b", bytes("3"), 1)).toEqual({ kind: "conflict" });
      expect(await bucket.delete("a.b", { revision: 1 })).toEqual({ kind: "conflict" });
      expect(await bucket.delete("a.b", { revision: 2 })).toEqual({ kind: "written", revision: 3 });
      expect(await bucket.get("a.b")).toBeUndefined();
      expect(await rival.create("a.b", bytes("4"))).toEqual({ kind: "written", revision: 4 });
      expect(await bucket.put("c", bytes("5"))).toEqual({ kind: "written", revision: 5 });
      expect(await bucket.get("a.b")).toMatchObject({ key: "a.b", revision: 4 });
      const keys: string[] = [];
      for await (const entry of bucket.entries()) keys.push(entry.key);
      expect(keys).toEqual(["a.b", "c"]);
    });

    it("tells a watcher of values, deletions and expiry, each for what it is", async () => {
      const name = fresh("kv");
      const { clock } = rig();
      await bus.ensureStream(bucketSpec(name));
      const bucket = new Bucket(bus, name);
      await bucket.put("old", bytes("0"));
      await bucket.put("gone", bytes("0"));
      await bucket.delete("gone");
      const events: (BucketEvent | "caught up")[] = [];
      const watch = await new Bucket(other, name).watch(">", {
        onEntry: (event) => events.push(event),
        onCaughtUp: () => events.push("caught up"),
      });
      await until(clock, () => events.includes("caught up"));
      expect(events).toMatchObject([{ kind: "put", key: "old", revision: 1 }, "caught up"]);
      await bucket.create("brief", bytes("1"), { ttlMs: 1_000 });
      await bucket.delete("old");
      await until(clock, () => events.some((event) => event !== "caught up" && event.kind === "expired"));
      expect(events.slice(2)).toMatchObject([
        { kind: "put", key: "brief", revision: 4 },
        { kind: "deleted", key: "old", revision: 5 },
        { kind: "expired", key: "brief", revision: 6 },
      ]);
      expect(await bucket.get("brief")).toBeUndefined();
      const keys: string[] = [];
      for await (const entry of bucket.entries()) keys.push(entry.key);
      expect(keys).toEqual([]);
      expect(await bucket.create("brief", bytes("2"))).toMatchObject({ kind: "written" });
      await watch.stop();
    });

    it("skips entries of the wrong shape and says so once", async () => {
      const name = fresh("kv");
      await bus.ensureStream(bucketSpec(name));
      const heard: Happening[] = [];
      const bucket = new TypedBucket(
        new Bucket(bus, name),
        z.strictObject({ n: z.number() }),
        (happening) => {
          heard.push(happening);
        },
      );
      await bucket.put("good", { n: 1 });
      await bucket.bucket.put("bad", bytes("{{"));
      await bucket.bucket.put("worse", encode({ n: "1" }));
      for (let i = 0; i < 2; i++) {
        const found: unknown[] = [];
        for await (const entry of bucket.entries()) found.push([entry.key, entry.value]);
        expect(found).toEqual([["good", { n: 1 }]]);
      }
      expect(await bucket.get("bad")).toBeUndefined();
      expect(heard).toHaveLength(2);
      expect(await bucket.get("good")).toMatchObject({ value: { n: 1 }, revision: 1 });
    });

    it("answers as a NATS service", async () => {
      const subject = fresh("micro");
      const { clock } = rig();
      const runtime = { clock, random: systemRandom, announce: silent };
      const name = fresh("svc-");
      const service = await startMicroService(
        bus,
        {
          name,
          version: "1.2.3",
          description: "for the test",
          endpoints: [
            {
              name: "double",
              subject: `${subject}.*`,
              handler: async (message) => {
                if (message.subject.endsWith("throw")) throw new Error("broken\r\nX: y");
                if (message.subject.endsWith("bad")) {
                  return { body: bytes("no"), error: { code: 400, description: "bad request" } };
                }
                return { body: bytes(text(message.body).repeat(2)) };
              },
            },
          ],
        },
        runtime,
      );
      const ask = async (to: string) => {
        const reply = await other.request(to, bytes("ab"), { timeoutMs: 2_000 });
        if (reply.kind !== "reply") throw new Error(reply.kind);
        return reply;
      };
      expect(text((await ask(`${subject}.ok`)).body)).toBe("abab");
      const bad = await ask(`${subject}.bad`);
      expect(bad.headers).toEqual({ "Nats-Service-Error": "bad request", "Nats-Service-Error-Code": "400" });
      expect((await ask(`${subject}.throw`)).headers["Nats-Service-Error-Code"]).toBe("500");
      for (const scope of [`.${name}`, `.${name}.${service.id}`]) {
        expect(JSON.parse(text((await ask(`$SRV.PING${scope}`)).body))).toMatchObject({
          name,
          id: service.id,
        });
      }
      expect(JSON.parse(text((await ask(`$SRV.INFO.${name}`)).body))).toMatchObject({
        type: "io.nats.micro.v1.info_response",
        description: "for the test",
        endpoints: [{ name: "double", subject: `${subject}.*`, queue_group: "q" }],
      });
      expect(JSON.parse(text((await ask(`$SRV.STATS.${name}`)).body))).toMatchObject({
        endpoints: [{ num_requests: 3, num_errors: 2 }],
      });
      await service.stop();
      expect(await other.request(`${subject}.ok`, bytes("ab"), { timeoutMs: 2_000 })).toEqual({
        kind: "nobody",
      });
    });

    it("is over once closed", async () => {
      const closing = await rig().connect();
      const stream = fresh("WQ");
      await bus.ensureStream(limits(stream));
      await closing.ensureConsumer({ stream, name: "c", filter: `${stream}.>`, ackWaitMs: 30_000 });
      const consumption = await closing.consume(stream, "c", { maxMessages: 1, onMessage: () => undefined });
      await closing.close();
      await closing.close();
      expect(await consumption.ended).toBe("stopped");
      expect(closing.connected()).toBe(false);
      await expect(closing.publish(`${stream}.a`, bytes("1"))).rejects.toMatchObject({ code: "bus_closed" });
      await expect(closing.streamInfo(stream)).rejects.toMatchObject({ code: "bus_closed" });
      await sleep(rig().clock, 1);
    });
  });
}
