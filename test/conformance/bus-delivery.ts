import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Bus, ConsumerSpec } from "../../shared/bus/index.ts";
import { sleep } from "../../shared/runtime/index.ts";
import { type BusRig, bytes, fresh, Inbox, limits, text, until, workQueue } from "./rig.ts";

export function delivery(rig: () => BusRig): void {
  describe("delivery", () => {
    let bus: Bus;
    let other: Bus;
    beforeAll(async () => {
      bus = await rig().connect();
      other = await rig().connect();
    });
    afterAll(async () => {
      await other.close();
    });

    const queue = async (more: Partial<ConsumerSpec> = {}) => {
      const stream = fresh("WQ");
      await bus.ensureStream(workQueue(stream));
      const spec = { stream, name: "c", filter: `${stream}.>`, ackWaitMs: 30_000, ...more };
      await bus.ensureConsumer(spec);
      return { stream, send: (body: string) => bus.publish(`${stream}.m`, bytes(body)) };
    };

    it("hands a work queue out in order, and acknowledged is gone", async () => {
      const { stream, send } = await queue();
      for (let i = 0; i < 50; i++) await send(`${i}`);
      const inbox = new Inbox({ ack: true });
      const consumption = await bus.consume(stream, "c", { maxMessages: 10, onMessage: inbox.onMessage });
      for (let i = 50; i < 100; i++) await send(`${i}`);
      await until(rig().clock, () => inbox.all.length === 100);
      expect(inbox.texts).toEqual(Array.from({ length: 100 }, (_, i) => `${i}`));
      expect(inbox.all.every((message) => message.deliveries === 1)).toBe(true);
      await until(rig().clock, async () => (await bus.streamInfo(stream))?.messages === 0);
      await consumption.stop();
      expect(await consumption.ended).toBe("stopped");
    });

    it("tells an idle consumption how many deliveries were sent, also those to others", async () => {
      const { stream, send } = await queue();
      await send("lost");
      const before = await other.next(stream, "c", { expiresMs: 5_000 });
      expect(before?.order).toBe(1);
      const inbox = new Inbox({ ack: false });
      const counts: number[] = [];
      const onIdle = (deliveries: number) => counts.push(deliveries);
      await send("comes");
      const consumption = await bus.consume(stream, "c", {
        maxMessages: 10,
        onMessage: inbox.onMessage,
        onIdle,
      });
      await until(rig().clock, () => counts.length > 0);
      expect(inbox.all.map(({ order }) => order)).toEqual([2]);
      expect(counts.at(-1)).toBe(2);
      await consumption.stop();
    });

    it("hands back what somebody has who is dead, at once, and nothing that is settled or not out", async () => {
      const { stream, send } = await queue();
      for (const body of ["settled", "with the dead", "with the living", "waits"]) await send(body);
      const dead = new Inbox({ ack: false });
      const first = await other.consume(stream, "c", { maxMessages: 2, onMessage: dead.onMessage });
      await until(rig().clock, () => dead.all.length === 2);
      await first.stop();
      const [settled, held] = dead.all;
      await settled?.ackSync();
      const living = new Inbox({ ack: false });
      const second = await bus.consume(stream, "c", { maxMessages: 1, onMessage: living.onMessage });
      await until(rig().clock, () => living.all.length === 1);
      await second.stop();
      const [info] = await bus.consumers(stream);
      expect(info).toMatchObject({ settledSeq: settled?.seq, handedOutSeq: living.all[0]?.seq });
      const waits = (living.all[0]?.seq ?? 0) + 1;
      await bus.handBack(stream, "c", [settled?.seq ?? 0, held?.seq ?? 0, waits]);
      const next = new Inbox({ ack: true });
      const third = await bus.consume(stream, "c", { maxMessages: 10, onMessage: next.onMessage });
      await until(rig().clock, () => next.all.length === 2);
      await sleep(rig().clock, 50);
      expect(next.all.map(({ deliveries }) => deliveries).sort()).toEqual([1, 2]);
      expect([...next.texts].sort()).toEqual(["waits", "with the dead"]);
      await third.stop();
      await living.all[0]?.ackSync();
    });

    it("never has more out than asked for", async () => {
      const { stream, send } = await queue();
      for (let i = 0; i < 20; i++) await send(`${i}`);
      const inbox = new Inbox({ ack: false });
      const consumption = await bus.consume(stream, "c", { maxMessages: 3, onMessage: inbox.onMessage });
      let settled = 0;
      while (settled < 20) {
        await until(rig().clock, () => inbox.all.length === Math.min(20, settled + 3));
        await sleep(rig().clock, 20);
        expect(inbox.all.length - settled).toBeLessThanOrEqual(3);
        inbox.all[settled++]?.ack();
      }
      expect(inbox.texts).toEqual(Array.from({ length: 20 }, (_, i) => `${i}`));
      await consumption.stop();
    });

    it("hands out more in the place of what is put aside, which can be settled later or comes again", async () => {
      const { stream, send } = await queue({ ackWaitMs: 1_000 });
      const { clock } = rig();
      for (let i = 0; i < 4; i++) await send(`${i}`);
      const inbox = new Inbox({ ack: false });
      const consumption = await bus.consume(stream, "c", { maxMessages: 2, onMessage: inbox.onMessage });
      await until(clock, () => inbox.all.length === 2);
      for (const message of inbox.all) message.putAside();
      await until(clock, () => inbox.all.length === 4);
      expect(inbox.texts).toEqual(["0", "1", "2", "3"]);
      for (const place of [0, 2, 3]) inbox.all[place]?.ack();
      await until(clock, () => inbox.all.length === 5);
      expect(inbox.all[4]).toMatchObject({ deliveries: 2, seq: 2 });
      inbox.all[4]?.ack();
      await until(clock, async () => (await bus.streamInfo(stream))?.messages === 0);
      await consumption.stop();
    });

    it("brings back what was refused, at once or later, and what was not settled", async () => {
      const { stream, send } = await queue({ ackWaitMs: 1_000 });
      const { clock } = rig();
      const inbox = new Inbox({ ack: false });
      const consumption = await bus.consume(stream, "c", { maxMessages: 5, onMessage: inbox.onMessage });
      await send("a");
      await until(clock, () => inbox.all.length === 1);
      inbox.all[0]?.nak();
      await until(clock, () => inbox.all.length === 2);
      expect(inbox.all[1]).toMatchObject({ deliveries: 2, seq: 1 });
      const refusedAt = clock.monotonic();
      inbox.all[1]?.nak(300);
      await until(clock, () => inbox.all.length === 3);
      expect(clock.monotonic() - refusedAt).toBeGreaterThanOrEqual(290);
      // Not settled, but kept alive for a while, then silent.
      const heldAt = clock.monotonic();
      for (let i = 0; i < 4; i++) {
        await sleep(clock, 500);
        inbox.all[2]?.working();
      }
      await until(clock, () => inbox.all.length === 4);
      expect(clock.monotonic() - heldAt).toBeGreaterThanOrEqual(2_900);
      expect(inbox.all[3]).toMatchObject({ deliveries: 4, seq: 1 });
      expect(await inbox.all[3]?.ackSync()).toBe(true);
      expect(await inbox.all[3]?.ackSync()).toBe(false);
      expect((await bus.streamInfo(stream))?.messages).toBe(0);
      await consumption.stop();
    });

    it("shares one consumer between clients", async () => {
      const { stream, send } = await queue();
      const inboxes = [new Inbox({ ack: true }), new Inbox({ ack: true })];
      const consumptions = await Promise.all(
        [bus, other].map((client, i) =>
          client.consume(stream, "c", {
            maxMessages: 2,
            onMessage: inboxes[i]?.onMessage ?? (() => undefined),
          }),
        ),
      );
      for (let i = 0; i < 60; i++) await send(`${i}`);
      await until(rig().clock, () => inboxes.reduce((sum, inbox) => sum + inbox.all.length, 0) === 60);
      for (const inbox of inboxes) expect(inbox.all.length).toBeGreaterThan(5);
      await Promise.all(consumptions.map((consumption) => consumption.stop()));
    });

    it("leaves nothing behind when stopped", async () => {
      const { stream, send } = await queue();
      const first = new Inbox({ ack: true });
      const consumption = await bus.consume(stream, "c", { maxMessages: 4, onMessage: first.onMessage });
      const sending = (async () => {
        for (let i = 0; i < 200; i++) await send(`${i}`);
      })();
      await until(rig().clock, () => first.all.length >= 20);
      await consumption.stop();
      const had = first.all.length;
      await sending;
      expect(first.all.length).toBe(had);
      const second = new Inbox({ ack: true });
      const rest = await other.consume(stream, "c", { maxMessages: 50, onMessage: second.onMessage });
      // Well before the acknowledgement wait of 30 s: what was under way was given back.
      await until(rig().clock, () => had + second.all.length >= 200, 5_000);
      expect([...first.texts, ...second.texts].map(Number).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 200 }, (_, i) => i),
      );
      await rest.stop();
    });

    it("ends a consumption whose consumer is deleted, or replaced under its name", async () => {
      const { stream, send } = await queue();
      const spec = { stream, name: "c", filter: `${stream}.>`, ackWaitMs: 30_000 };
      const inbox = new Inbox({ ack: false });
      const consumption = await bus.consume(stream, "c", { maxMessages: 4, onMessage: inbox.onMessage });
      await send("1");
      await until(rig().clock, () => inbox.all.length === 1);
      expect(await other.deleteConsumer(stream, "c")).toBe(true);
      await other.ensureConsumer(spec);
      expect(await consumption.ended).toBe("gone");
      // Everything unacknowledged comes to the new owner at once.
      const heir = new Inbox({ ack: true });
      const taken = await other.consume(stream, "c", { maxMessages: 4, onMessage: heir.onMessage });
      await until(rig().clock, () => heir.all.length === 1);
      expect(heir.all[0]?.deliveries).toBe(1);
      await other.deleteStream(stream);
      expect(await taken.ended).toBe("gone");
      await expect(
        bus.consume(stream, "c", { maxMessages: 1, onMessage: inbox.onMessage }),
      ).rejects.toMatchObject({
        code: "consumer_gone",
      });
      expect(await bus.deleteConsumer(stream, "c")).toBe(false);
    });

    it("takes single messages", async () => {
      const { stream, send } = await queue();
      expect(await bus.next(stream, "c", { expiresMs: 100 })).toBeUndefined();
      const waiting = bus.next(stream, "c", { expiresMs: 10_000 });
      await send("1");
      await send("2");
      const first = await waiting;
      expect(text(first?.body ?? bytes(""))).toBe("1");
      first?.ack();
      const second = await bus.next(stream, "c", { expiresMs: 1_000 });
      expect(text(second?.body ?? bytes(""))).toBe("2");
      second?.nak();
      const again = await other.next(stream, "c", { expiresMs: 1_000 });
      expect(again?.deliveries).toBe(2);
      again?.ack();
      const abort = new AbortController();
      const aborted = bus.next(stream, "c", { expiresMs: 60_000, signal: abort.signal });
      abort.abort();
      expect(await aborted).toBeUndefined();
      await send("3");
      const third = await other.next(stream, "c", { expiresMs: 2_000 });
      expect(text(third?.body ?? bytes(""))).toBe("3");
      third?.ack();
      const dying = bus.next(stream, "c", { expiresMs: 60_000 });
      dying.catch(() => undefined);
      await until(rig().clock, async () => (await other.consumers(stream)).length === 1);
      await sleep(rig().clock, 20);
      await other.deleteConsumer(stream, "c");
      await expect(dying).rejects.toMatchObject({ code: "consumer_gone" });
      await expect(bus.next(stream, "c", { expiresMs: 1_000 })).rejects.toMatchObject({
        code: "consumer_gone",
      });
    });

    it("loses no message to a request that is over while somebody listens to everything", async () => {
      const { stream, send } = await queue();
      const everything = await other.subscribe(">", {}, () => undefined);
      for (let i = 0; i < 3; i++) expect(await bus.next(stream, "c", { expiresMs: 50 })).toBeUndefined();
      await send("1");
      const first = await bus.next(stream, "c", { expiresMs: 5_000 });
      expect(first?.deliveries).toBe(1);
      first?.ack();
      await everything.stop();
    });

    it("keeps consumers of a work queue apart and counts for them", async () => {
      const stream = fresh("WQ");
      await bus.ensureStream(workQueue(stream));
      const spec = (name: string, filter: string) => ({ stream, name, filter, ackWaitMs: 30_000 });
      await bus.ensureConsumer(spec("a", `${stream}.a.*`));
      await bus.ensureConsumer(spec("a", `${stream}.a.*`));
      await bus.ensureConsumer(spec("b", `${stream}.b.*`));
      await expect(bus.ensureConsumer(spec("c", `${stream}.*.x`))).rejects.toMatchObject({ name: "Fault" });
      for (const subject of ["a.1", "b.1", "a.2", "a.3"])
        await bus.publish(`${stream}.${subject}`, bytes(subject));
      const one = await bus.next(stream, "a", { expiresMs: 1_000 });
      expect(one?.subject).toBe(`${stream}.a.1`);
      const infos = await bus.consumers(stream);
      expect(infos.find((info) => info.name === "a")).toMatchObject({
        filter: `${stream}.a.*`,
        pending: 2,
        ackPending: 1,
      });
      expect(infos.find((info) => info.name === "b")).toMatchObject({ pending: 1, ackPending: 0 });
      expect(await bus.consumers(fresh("NONE"))).toEqual([]);
    });

    it("gives every consumer of a stream with limits everything, headers alone where asked", async () => {
      const stream = fresh("LM");
      await bus.ensureStream(limits(stream));
      for (const name of ["a", "b"]) {
        await bus.ensureConsumer({
          stream,
          name,
          filter: `${stream}.>`,
          ackWaitMs: 30_000,
          headersOnly: name === "b",
        });
      }
      for (let i = 0; i < 5; i++)
        await bus.publish(`${stream}.x`, bytes(`${i}`), { headers: { "X-N": `${i}` } });
      for (const name of ["a", "b"]) {
        const inbox = new Inbox({ ack: true });
        const consumption = await bus.consume(stream, name, { maxMessages: 10, onMessage: inbox.onMessage });
        await until(rig().clock, () => inbox.all.length === 5);
        expect(inbox.all.map((message) => message.headers["X-N"])).toEqual(["0", "1", "2", "3", "4"]);
        expect(inbox.texts).toEqual(name === "a" ? ["0", "1", "2", "3", "4"] : ["", "", "", "", ""]);
        await consumption.stop();
      }
      expect((await bus.streamInfo(stream))?.messages).toBe(5);
    });

    it("removes a consumer nobody uses, where told to", async () => {
      const { stream } = await queue({ inactiveMs: 1_000 });
      await until(rig().clock, async () => (await bus.consumers(stream)).length === 0);
    });

    it("shows a view what is there, then what is new", async () => {
      const stream = fresh("LM");
      const { clock } = rig();
      await bus.ensureStream(limits(stream, { maxMsgsPerSubject: 1 }));
      for (const [subject, body] of Object.entries({ a: "1", b: "2", "x.y": "3" })) {
        await bus.publish(`${stream}.${subject}`, bytes(body));
      }
      await bus.publish(`${stream}.a`, bytes("4"));
      const seen: string[] = [];
      const view = await bus.tail(stream, `${stream}.*`, {
        existing: true,
        onMessage: (message) => seen.push(text(message.body)),
        onCaughtUp: () => seen.push("caught up"),
      });
      await until(clock, () => seen.includes("caught up"));
      expect(seen).toEqual(["2", "4", "caught up"]);
      const fresher: string[] = [];
      const late = await other.tail(stream, `${stream}.>`, {
        existing: false,
        onMessage: (message) => fresher.push(text(message.body)),
      });
      await bus.publish(`${stream}.c`, bytes("5"));
      await bus.publish(`${stream}.x.y`, bytes("6"));
      await bus.publish(`${stream}.c`, bytes("7"));
      await until(clock, () => seen.at(-1) === "7" && fresher.at(-1) === "7");
      expect(seen.slice(0, 4)).toEqual(["2", "4", "caught up", "5"].slice(0, seen.length - 1));
      expect(fresher).toContain("6");
      await view.stop();
      await late.stop();
      const had = seen.length;
      await bus.publish(`${stream}.c`, bytes("8"));
      await sleep(clock, 50);
      expect(seen.length).toBe(had);
      let empty = false;
      const nothing = await bus.tail(stream, `${stream}.nothing`, {
        existing: true,
        onMessage: () => undefined,
        onCaughtUp: () => {
          empty = true;
        },
      });
      await until(clock, () => empty);
      await nothing.stop();
      await expect(
        bus.tail(fresh("NONE"), ">", { existing: true, onMessage: () => undefined }),
      ).rejects.toMatchObject({ code: "no_stream" });
    });

    it("has no views of a work queue", async () => {
      const { stream } = await queue();
      const looking = bus.tail(stream, `${stream}.>`, { existing: true, onMessage: () => undefined });
      await expect(looking).rejects.toMatchObject({ name: "Fault", kind: "bug" });
    });
  });
}
