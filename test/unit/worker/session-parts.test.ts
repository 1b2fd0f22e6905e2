import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventQueue } from "../../../services/worker/hosts/event-queue.ts";
import { Heartbeat } from "../../../services/worker/hosts/isolated/heartbeat.ts";
import { movable } from "../../../services/worker/hosts/isolated/protocol.ts";
import { type Aborting, LazyAbort } from "../../../services/worker/lazy-abort.ts";
import { Batch } from "../../../services/worker/sessions/calls/batch.ts";
import { Capacity, type Place } from "../../../services/worker/sessions/claiming/capacity.ts";
import { RecentKeys } from "../../../shared/bus/index.ts";
import { call, defineSession } from "../../../shared/definitions/index.ts";
import type { Clock } from "../../../shared/runtime/index.ts";

/** Time that the test advances. */
class HandClock implements Clock {
  #now = 0;
  #timers: { at: number; fn: () => void }[] = [];
  now = () => this.#now;
  monotonic = () => this.#now;
  after(ms: number, fn: () => void) {
    const timer = { at: this.#now + ms, fn };
    this.#timers.push(timer);
    return { cancel: () => (this.#timers = this.#timers.filter((one) => one !== timer)) };
  }
  pass(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const [next] = this.#timers.filter((one) => one.at <= until).sort((a, b) => a.at - b.at);
      if (!next) break;
      this.#timers = this.#timers.filter((one) => one !== next);
      this.#now = next.at;
      next.fn();
    }
    this.#now = until;
  }
}

describe("capacity", () => {
  it("is never above its limits, and a place is given back once", () => {
    const step = fc.record({
      take: fc.boolean(),
      type: fc.constantFrom("a", "b"),
      vram: fc.nat(3),
      i: fc.nat(20),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const limits = { max: 4, maxOf: (type: string) => (type === "a" ? 2 : 10), resources: { vram: 5 } };
        const capacity = new Capacity(limits, () => undefined);
        const places: { place: Place; type: string; vram: number; held: boolean }[] = [];
        for (const { take, type, vram, i } of steps) {
          if (take) {
            const place = capacity.take(type, { tags: [], resources: { vram } });
            if (place) places.push({ place, type, vram, held: true });
          } else {
            const one = places[i % Math.max(1, places.length)];
            one?.place.free();
            one?.place.free();
            if (one) one.held = false;
          }
          const held = places.filter((one) => one.held);
          expect(capacity.used).toBe(held.length);
          expect(capacity.used).toBeLessThanOrEqual(4);
          expect(capacity.usedBy("a")).toBeLessThanOrEqual(2);
          const used = held.reduce((sum, one) => sum + one.vram, 0);
          expect(capacity.resourcesUsed().vram ?? 0).toBe(used);
          expect(used).toBeLessThanOrEqual(5);
        }
      }),
    );
  });
});

describe("the heartbeat of a host", () => {
  const options = { initialDelayMs: 10, intervalMs: 10, timeoutMs: 50, maxMissed: 3 };

  it("asks one at a time, and gives up after missing several in a row", () => {
    const clock = new HandClock();
    const pings: number[] = [];
    const hung: number[] = [];
    const heartbeat = new Heartbeat(
      clock,
      options,
      (n) => pings.push(n),
      (ms) => hung.push(ms),
    );
    clock.pass(10);
    expect(pings).toEqual([1]);
    expect(heartbeat.unansweredMs()).toBe(0);
    clock.pass(60);
    expect(pings).toEqual([1, 2]);
    expect(heartbeat.unansweredMs(), "of the first").toBe(60);
    heartbeat.pong(); // late, but alive
    expect(heartbeat.unansweredMs()).toBe(0);
    clock.pass(159);
    expect(hung).toEqual([]);
    clock.pass(2);
    expect(hung).toEqual([160]);
    clock.pass(1000);
    expect(hung).toHaveLength(1);
  });

  it("falls silent when stopped", () => {
    const clock = new HandClock();
    let asked = 0;
    const heartbeat = new Heartbeat(
      clock,
      options,
      () => asked++,
      () => undefined,
    );
    heartbeat.stop();
    clock.pass(1000);
    heartbeat.pong();
    clock.pass(1000);
    expect(asked).toBe(0);
  });
});

describe("small parts", () => {
  it("a batch runs when all have joined or left", async () => {
    const ran: unknown[][] = [];
    const batch = new Batch(
      3,
      async (inputs) => {
        ran.push(inputs);
        return inputs.map((value) => ({ ok: true, value }));
      },
      () => undefined,
    );
    const { signal } = new AbortController();
    const first = batch.join("a", signal);
    batch.leave();
    expect(ran).toEqual([]);
    const second = batch.join("b", signal);
    expect(await Promise.all([first, second])).toEqual(["a", "b"]);
    expect(ran).toEqual([["a", "b"]]);
  });

  it("a batch is aborted when all its members are, not before", async () => {
    const [one, two] = [new AbortController(), new AbortController()];
    let seen: Aborting | undefined;
    const batch = new Batch(
      2,
      (_inputs, signal) => {
        seen = signal;
        return new Promise(() => undefined);
      },
      () => undefined,
    );
    void batch.join(1, one.signal);
    void batch.join(2, two.signal);
    one.abort();
    expect(seen?.aborted).toBe(false);
    two.abort();
    expect(seen?.aborted).toBe(true);
  });

  it("what was seen is remembered up to a number", () => {
    const seen = new RecentKeys(2);
    expect([
      seen.add("a"),
      seen.add("a"),
      seen.add("b"),
      seen.add("c"),
      seen.add("a"),
      seen.add("c"),
    ]).toEqual([true, false, true, true, true, false]);
  });

  it("a signal nobody asks for is not made, and a late asker sees the abort", () => {
    const abort = new LazyAbort();
    abort.abort(new Error("stop"));
    abort.abort(new Error("again"));
    expect(abort.signal.aborted).toBe(true);
    expect(abort.signal.reason).toMatchObject({ message: "stop" });
  });

  it("only buffers that belong to the message alone move", () => {
    expect(movable(new Uint8Array(8))).toHaveLength(1);
    expect(movable(new Uint8Array(8).subarray(2))).toEqual([]);
  });

  it("events wait for a listener, keep their order, and end with the session or the run", async () => {
    const queue = new EventQueue();
    queue.push({ name: "a", payload: 1 });
    const abort = new AbortController();
    const iterator = queue.listen(abort.signal)[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual({ name: "a", payload: 1 });
    const waiting = iterator.next();
    queue.push({ name: "b", payload: 2 });
    expect((await waiting).value).toEqual({ name: "b", payload: 2 });
    const last = iterator.next();
    abort.abort();
    expect((await last).done).toBe(true);
    queue.close();
    const after = queue.listen(new AbortController().signal)[Symbol.asyncIterator]();
    expect((await after.next()).done).toBe(true);
  });

  it("types that contradict themselves are refused by name", () => {
    const refuse =
      (options: object, calls = {}) =>
      () =>
        defineSession("wrong", { init: () => ({}), calls, ...options });
    expect(refuse({ leaseTtl: "1500ms" })).toThrow(/leaseTtl of session type wrong of 1500 ms/);
    expect(refuse({ concurrency: 0 })).toThrow(/concurrency of session type wrong is 0/);
    for (const maxTotal of [0, -1, 1.5, Number.NaN]) {
      expect(refuse({ maxTotal })).toThrow(`maxTotal of session type wrong is ${maxTotal}`);
    }
    expect(refuse({ maxPerWorker: 3, maxTotal: 2 })).toThrow(
      /maxPerWorker \(3\) and maxTotal \(2\) of session type wrong contradict/,
    );
    expect(refuse({ maxPerWorker: 2, maxTotal: 2 })).not.toThrow();
    expect(refuse({ isolation: "process", host: { sessionsPerHost: 2 } })).toThrow(/host.sessionsPerHost/);
    const hasty = { hasty: call({ timeout: "1s", heartbeatTimeout: "2s", run: () => 1 }) };
    expect(refuse({}, hasty)).toThrow(/heartbeatTimeout \(2000 ms\) and timeout \(1000 ms\) of wrong.hasty/);
    const none = { none: call({ batch: { maxSize: 0, maxDelay: 1 }, run: () => [] }) };
    expect(refuse({}, none)).toThrow(/batch.maxSize of wrong.none is 0/);
    expect(refuse({ host: { ping: { enable: false } } })).toThrow(/host.ping .* did you mean "enabled"/);
    expect(refuse({ host: { pingTimeout: 0 } })).toThrow(/host.pingTimeout of session type wrong must be/);
    expect(refuse({ host: { maxAge: "long" } })).toThrow(/host.maxAge of session type wrong: "long"/);
    expect(refuse({ host: { maxRssMb: -1 } })).toThrow(/host.maxRssMb of session type wrong is -1/);
    expect(refuse({ isolation: "vm" })).toThrow(
      /isolation of session type wrong is "vm": must be one of inline/,
    );
    expect(refuse({ afterCancel: "stop" })).toThrow(/afterCancel of session type wrong is "stop"/);
    expect(refuse({ requires: { tags: "gpu" } })).toThrow(/tags must be a list, not "gpu"/);
    expect(refuse({ requires: { tags: ["a b"] } })).toThrow(/tag "a b" is not allowed/);
    expect(refuse({ requires: { tag: ["gpu"] } })).toThrow(/did you mean "tags"/);
    expect(refuse({ requires: { resources: { vram: -1 } } })).toThrow(/resources.vram is -1/);
  });
});
