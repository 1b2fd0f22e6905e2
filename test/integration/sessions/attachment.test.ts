import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { WorkerInfo } from "../../../schemas/index.ts";
import {
  call,
  defineActivity,
  defineSession,
  type SessionTypeOptions,
} from "../../../shared/definitions/index.ts";
import { SessionLostError } from "../../../shared/errors/index.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

let serial = 0;
const fresh = (): string => `s${++serial}`;

const shutdowns: string[] = [];
const counter = defineSession("counter", {
  config: z.object({ from: z.number() }),
  init: (ctx, { from }) => ({ n: from, id: ctx.session.id, log: [] as string[] }),
  calls: {
    add: call({
      input: z.number(),
      output: z.number(),
      run: (state, by) => {
        state.n += by;
        return state.n;
      },
    }),
    bad: call({ output: z.number(), run: () => "text" as never }),
    whoami: call({
      run: (_state, _input, ctx) => ({
        id: ctx.session.id,
        epoch: ctx.session.epoch,
        attachment: ctx.session.attachment,
        metadata: ctx.session.metadata,
      }),
    }),
    weird: call({ run: () => ({ big: 10n }) }),
    giveUp: call({
      run: (_state, reason: string, ctx) => {
        ctx.session.abort(reason);
        return new Promise(() => undefined);
      },
    }),
  },
  snapshot: (state) => ({ n: state.n }),
  shutdown: (state) => {
    shutdowns.push(state.id);
  },
});

describe("a session held by a worker", () => {
  it("is claimed, made and told", async () => {
    const { workerId } = await rig.worker({ counter });
    const id = fresh();
    const on = await rig.open("counter", id, { config: { from: 5 }, metadata: { team: "a" } });
    expect(on).toMatchObject({ attachment: 1, workerId });
    expect(rig.kinds(id)).toEqual(["activated"]);
    await rig.untilNoClaims();
    const of = await rig.call(on, id, { name: "add", input: 2 });
    expect(await rig.output(of)).toBe(7);
    expect(rig.calls.find((one) => one.of === of)).toMatchObject({ epoch: on.epoch, workerId });
    expect(await rig.output(await rig.call(on, id, { name: "whoami" }))).toEqual({
      id,
      epoch: on.epoch,
      attachment: 1,
      metadata: { team: "a" },
    });
  });

  it("answers every kind of bad call and lives on", async () => {
    await rig.worker({ counter });
    const id = fresh();
    const on = await rig.open("counter", id, { config: { from: 0 } });
    const fail = async (name: string, input?: unknown) => {
      const result = await rig.result(await rig.call(on, id, { name, input }));
      return result.kind === "failed" ? result.error : result;
    };
    expect(await fail("add", "two")).toMatchObject({ code: "invalid_input", retryable: false });
    expect(await fail("bad")).toMatchObject({ code: "invalid_output" });
    expect(await fail("nothing")).toMatchObject({ code: "unknown_call", retryable: false });
    expect(await fail("constructor")).toMatchObject({ code: "unknown_call" });
    expect(await fail("weird")).toMatchObject({ retryable: false });
    expect(await rig.output(await rig.call(on, id, { name: "add", input: 1 }))).toBe(1);
  });

  it("runs calls in the order they came, one at a time, or as many as the type allows", async () => {
    const trace: string[] = [];
    let running = 0;
    let most = 0;
    const make = (name: string, concurrency: number) =>
      defineSession(name, {
        concurrency,
        init: () => ({}),
        calls: {
          step: call({
            run: async (_state, n: number) => {
              most = Math.max(most, ++running);
              trace.push(`begin ${n}`);
              await new Promise((resolve) => setTimeout(resolve, 20 - n));
              trace.push(`end ${n}`);
              running--;
              return n;
            },
          }),
        },
      });
    await rig.worker({ ordered: make("ordered", 1), wide: make("wide", 3) });
    const id = fresh();
    const on = await rig.open("ordered", id);
    const all: number[] = [];
    for (let n = 0; n < 6; n++) all.push(await rig.call(on, id, { name: "step", input: n }));
    for (const of of all) await rig.result(of);
    expect(trace).toEqual([0, 1, 2, 3, 4, 5].flatMap((n) => [`begin ${n}`, `end ${n}`]));
    expect(most).toBe(1);
    const wide = fresh();
    const onWide = await rig.open("wide", wide);
    const more = Array.from({ length: 9 }, (_, n) => rig.call(onWide, wide, { name: "step", input: n }));
    for (const of of await Promise.all(more)) await rig.result(of);
    expect(most).toBe(3);
  });

  it("runs a call once, however often it is sent", async () => {
    await rig.worker({ counter });
    const id = fresh();
    const on = await rig.open("counter", id, { config: { from: 0 } });
    const of = await rig.call(on, id, { name: "add", input: 1, of: 9001 });
    await rig.call(on, id, { name: "add", input: 1, of: 9001 });
    expect(await rig.output(of)).toBe(1);
    await rig.call(on, id, { name: "add", input: 1, of: 9001 });
    expect(await rig.output(await rig.call(on, id, { name: "add", input: 10 }))).toBe(11);
  });

  it("defect 41: its calls are counted where describe() reads them", async () => {
    const env = { WORKER_REGISTER_EVERY: "1m", WORKER_REGISTER_TTL: "5m" };
    await rig.worker({ counter }, { env });
    const id = fresh();
    const on = await rig.open("counter", id, { config: { from: 0 } });
    const counted = async () => {
      const entry = await rig.bus.last("KV_workers", `$KV.workers.${on.workerId}`);
      const info = entry && WorkerInfo.parse(JSON.parse(new TextDecoder().decode(entry.body)));
      return info?.sessions.find(({ sessionId }) => sessionId === id)?.calls;
    };
    // The reports of the opening are sent: only the calls lead to the next entry.
    await rig.poll("the session in the register", async () => (await counted()) === 0);
    for (let n = 0; n < 3; n++) await rig.result(await rig.call(on, id, { name: "add", input: 1 }));
    await rig.poll("three calls in the register", async () => (await counted()) === 3);
  });

  it("drops work of another epoch and of sessions it does not hold, and counts it", async () => {
    const { workerId } = await rig.worker({ counter });
    const id = fresh();
    const on = await rig.open("counter", id, { config: { from: 0 } });
    await rig.call({ workerId, epoch: on.epoch + 1 }, id, { name: "add", input: 1, of: 9101 });
    await rig.call({ workerId, epoch: on.epoch }, "nobody", { name: "add", input: 1, of: 9102 });
    await rig.happening("completion.fenced", (one) => one.of === 9101);
    await rig.happening("completion.fenced", (one) => one.of === 9102);
    expect(await rig.output(await rig.call(on, id, { name: "add", input: 1 }))).toBe(1);
    expect(rig.calls.filter((one) => one.of === 9101 || one.of === 9102)).toEqual([]);
  });

  it("tells a failed init after letting go, and has room for the next", async () => {
    const broken = defineSession("broken", {
      init: () => {
        throw new Error("no such model");
      },
      calls: {},
    });
    await rig.worker({ broken, counter }, { env: { WORKER_MAX_SESSIONS: "1" } });
    const id = fresh();
    await rig.claim("broken", id);
    const { error } = await rig.heard(id, "init_failed");
    expect(error.message).toBe("no such model");
    expect(rig.kinds(id)).toEqual(["init_failed"]);
    const bad = fresh();
    await rig.claim("counter", bad, { config: { from: "x" } });
    expect((await rig.heard(bad, "init_failed")).error).toMatchObject({
      code: "invalid_config",
      retryable: false,
    });
    await rig.open("counter", fresh(), { config: { from: 1 } });
  });

  it("gives up an init that takes too long", async () => {
    const slow = defineSession("slow", { init: () => new Promise<object>(() => undefined), calls: {} });
    await rig.worker({ slow }, { env: { WORKER_MAX_INIT: "1s" }, timing: { closeMs: 50 } });
    const id = fresh();
    await rig.claim("slow", id);
    expect((await rig.heard(id, "init_failed")).error.code).toBe("timeout");
  });

  it("refuses a lease time nobody can hold, and tells", async () => {
    await rig.worker({ counter });
    const id = fresh();
    await rig.claim("counter", id, { config: { from: 0 }, leaseTtlMs: 1500 });
    expect((await rig.heard(id, "init_failed")).error).toMatchObject({
      code: "invalid_lease_ttl",
      retryable: false,
    });
    await rig.untilNoClaims();
  });

  it("closes: aborts what runs, shuts down once, tells nothing, holds nothing", async () => {
    let aborted: unknown;
    const gone: string[] = [];
    const lingering = defineSession("lingering", {
      init: (ctx) => ctx.session.id,
      calls: {
        wait: call({
          run: (_state, _input, ctx) =>
            new Promise((_resolve, reject) => {
              ctx.signal.addEventListener("abort", () => {
                aborted = ctx.signal.reason;
                reject(ctx.signal.reason);
              });
            }),
        }),
      },
      shutdown: (state) => {
        gone.push(state);
      },
    });
    const { workerId } = await rig.worker({ lingering });
    const id = fresh();
    const on = await rig.open("lingering", id);
    const running = await rig.call(on, id, { name: "wait" });
    const queued = await rig.call(on, id, { name: "wait" });
    await rig.happening("call.started", (one) => one.of === running);
    for (let i = 0; i < 3; i++) await rig.work(workerId, id, { kind: "close", epoch: on.epoch } as never);
    await rig.happening("session.detached", (one) => one.sessionId === id && one.why === "closed");
    expect(aborted).toMatchObject({ code: "cancelled" });
    expect(gone).toEqual([id]);
    expect(rig.calls.filter((one) => one.of === running || one.of === queued)).toEqual([]);
    expect(rig.kinds(id)).toEqual(["activated"]);
    await rig.work(workerId, id, { kind: "close", epoch: on.epoch } as never);
  });

  it("closes in bounded time though the code does not listen", async () => {
    const deaf = defineSession("deaf", {
      init: () => ({}),
      calls: { wait: call({ run: () => new Promise(() => undefined) }) },
    });
    const { workerId } = await rig.worker({ deaf }, { timing: { closeMs: 100 } });
    const id = fresh();
    const on = await rig.open("deaf", id);
    const of = await rig.call(on, id, { name: "wait" });
    await rig.happening("call.started", (one) => one.of === of);
    await rig.work(workerId, id, { kind: "close", epoch: on.epoch } as never);
    await rig.happening("session.detached", (one) => one.sessionId === id, 3000);
  });

  it("cancels one call and serves the next", async () => {
    const patient = defineSession("patient", {
      init: () => ({}),
      calls: {
        wait: call({
          run: (_state, _input, ctx) =>
            new Promise<string>((resolve) => ctx.signal.addEventListener("abort", () => resolve("stopped"))),
        }),
        quick: call({ run: () => "quick" }),
      },
    });
    const { workerId } = await rig.worker({ patient });
    const id = fresh();
    const on = await rig.open("patient", id);
    const first = await rig.call(on, id, { name: "wait" });
    const second = await rig.call(on, id, { name: "wait" });
    const third = await rig.call(on, id, { name: "quick" });
    await rig.happening("call.started", (one) => one.of === first);
    await rig.work(workerId, id, { kind: "cancel", epoch: on.epoch, execution: 1, of: second } as never);
    await rig.work(workerId, id, { kind: "cancel", epoch: on.epoch, execution: 1, of: first } as never);
    expect(await rig.output(third)).toBe("quick");
    expect(rig.happenings.some((one) => one.kind === "call.started" && one.of === second)).toBe(false);
  });

  it("parks when nobody calls, not while a call runs", async () => {
    const lazy = defineSession("lazy", {
      idleTimeout: "200ms",
      init: () => ({}),
      calls: {
        slow: call({ run: () => new Promise<void>((resolve) => setTimeout(resolve, 600)) }),
      },
    });
    await rig.worker({ lazy });
    const id = fresh();
    const on = await rig.open("lazy", id);
    const of = await rig.call(on, id, { name: "slow" });
    await rig.result(of);
    expect(rig.kinds(id)).not.toContain("parked");
    const parked = await rig.heard(id, "parked");
    expect(parked.epoch).toBe(on.epoch);
    const again = await rig.open("lazy", id, { attachment: 2 });
    expect(again.epoch).toBeGreaterThan(on.epoch);
  });

  it("takes the session's own idle time before the type's", async () => {
    await rig.worker({ counter });
    const id = fresh();
    await rig.open("counter", id, { config: { from: 0 }, idleTimeoutMs: 150 });
    await rig.heard(id, "parked", 1, 2000);
  });

  describe("defect 40: a cancelled call that ignores its signal", () => {
    const stubborn = (name: string, options: SessionTypeOptions) =>
      defineSession(name, {
        ...options,
        init: () => ({}),
        calls: {
          hang: call({ run: () => new Promise(() => undefined) }),
          quick: call({ run: () => "quick" }),
        },
      });
    const deaf = defineActivity("deaf", { run: () => new Promise(() => undefined) });
    const cancelled = async (type: string) => {
      const id = fresh();
      const on = await rig.open(type, id);
      const name = type === "bare" ? "deaf" : "hang";
      const of = await rig.call(on, id, { name }, type !== "bare");
      await rig.happening("call.started", (one) => one.of === of);
      await rig.work(on.workerId, id, { kind: "cancel", epoch: on.epoch, execution: 1, of } as never);
      return { id, on };
    };

    it("costs the session its state after a grace", async () => {
      await rig.worker({ gives: stubborn("gives", {}), deaf }, { timing: { closeMs: 200 } });
      for (const type of ["gives", "bare"]) {
        const { id, on } = await cancelled(type);
        const lost = await rig.heard(id, "lost");
        expect(lost).toMatchObject({ reason: "hung", epoch: on.epoch });
        expect(lost.detail).toMatch(/was cancelled and did not stop/);
      }
    });

    it("is left behind where the type says so", async () => {
      const goes = stubborn("goes", { afterCancel: "go_on" });
      await rig.worker({ goes }, { timing: { closeMs: 200 } });
      const { id, on } = await cancelled("goes");
      expect(await rig.output(await rig.call(on, id, { name: "quick" }))).toBe("quick");
      expect(rig.kinds(id)).toEqual(["activated"]);
    });
  });

  it("is given up by its own code, by an operator, and by a call that overstays", async () => {
    const slow = defineSession("overstay", {
      init: () => ({}),
      calls: {
        hang: call({ timeout: "150ms", run: () => new Promise(() => undefined) }),
        mute: call({ heartbeatTimeout: "150ms", run: () => new Promise(() => undefined) }),
      },
    });
    const { workerId } = await rig.worker({ counter, slow }, { timing: { closeMs: 200 } });
    const aborted = fresh();
    const on = await rig.open("counter", aborted, { config: { from: 0 } });
    await rig.call(on, aborted, { name: "giveUp", input: "GPU on fire" });
    expect(await rig.heard(aborted, "lost")).toMatchObject({
      reason: "aborted",
      detail: "GPU on fire",
      epoch: on.epoch,
    });
    const evicted = fresh();
    await rig.open("counter", evicted, { config: { from: 0 } });
    await rig.work(workerId, evicted, { kind: "evict", reason: "maintenance" } as never);
    expect(await rig.heard(evicted, "lost")).toMatchObject({ reason: "evicted", detail: "maintenance" });
    const drained = fresh();
    const onDrained = await rig.open("counter", drained, { config: { from: 0 } });
    await rig.work(workerId, drained, { kind: "drain", epoch: onDrained.epoch + 1 } as never);
    await rig.work(workerId, drained, { kind: "drain", epoch: onDrained.epoch } as never);
    expect(await rig.heard(drained, "lost")).toMatchObject({ reason: "drained", epoch: onDrained.epoch });
    for (const name of ["hang", "mute"]) {
      const hung = fresh();
      const onHung = await rig.open("overstay", hung);
      const of = await rig.call(onHung, hung, { name });
      expect(await rig.result(of)).toMatchObject({ kind: "failed", error: { code: "timeout" } });
      expect(await rig.heard(hung, "lost")).toMatchObject({ reason: "hung" });
    }
  });

  it("runs ordinary activities, and says when a bare session's own state is missing", async () => {
    const states = new Map<string, number>();
    const put = defineActivity("put", {
      run: (ctx, n: number) => {
        states.set(ctx.session?.id ?? "", n);
        return ctx.session?.epoch;
      },
    });
    const get = defineActivity("get", {
      run: (ctx) => {
        const n = states.get(ctx.session?.id ?? "");
        if (n === undefined) throw new SessionLostError("nothing here");
        return n;
      },
    });
    await rig.worker({ put, get });
    const id = fresh();
    const on = await rig.open("bare", id);
    expect(await rig.result(await rig.call(on, id, { name: "get" }, false))).toEqual({
      kind: "state_missing",
      message: "nothing here",
    });
    expect(await rig.output(await rig.call(on, id, { name: "put", input: 4 }, false))).toBe(on.epoch);
    expect(await rig.output(await rig.call(on, id, { name: "get" }, false))).toBe(4);
    const missing = await rig.result(await rig.call(on, id, { name: "nope" }, false));
    expect(missing).toMatchObject({ kind: "failed", error: { code: "unknown_activity" } });
  });

  it("tells code on which machine and resource it runs", async () => {
    const where = defineActivity("where", {
      run: ({ worker, session }) => [worker?.host, worker?.resourceId, session?.host, session?.resourceId],
    });
    const placed = defineSession("placed", {
      init: () => ({}),
      calls: {
        where: call({
          run: (_state, _input, { worker, session }) => [
            worker?.host,
            worker?.resourceId,
            session.host,
            session.resourceId,
          ],
        }),
      },
    });
    await rig.worker({ where, placed }, { env: { WORKER_RESOURCE_ID: "gpu-7" } });
    for (const type of ["bare", "placed"]) {
      const id = fresh();
      const on = await rig.open(type, id);
      const of = await rig.call(on, id, { name: "where" }, type !== "bare");
      expect(await rig.output(of)).toEqual(["test-host", "gpu-7", "test-host", "gpu-7"]);
    }
  });

  it("hands events to the state in order, between calls and during one", async () => {
    const listener = defineSession("listener", {
      init: () => ({}),
      calls: {
        collect: call({
          run: async (_state, n: number, ctx) => {
            const got: unknown[] = [];
            for await (const event of ctx.session.events) {
              got.push([event.name, event.payload]);
              if (got.length === n) break;
            }
            return got;
          },
        }),
      },
    });
    const { workerId } = await rig.worker({ listener });
    const id = fresh();
    const on = await rig.open("listener", id);
    const send = (name: string, payload: unknown) =>
      rig.work(workerId, id, { kind: "event", name, payload: { json: payload } } as never);
    await send("a", 1);
    await send("b", 2);
    const of = await rig.call(on, id, { name: "collect", input: 3 });
    await rig.happening("call.started", (one) => one.of === of);
    await send("c", 3);
    expect(await rig.output(of)).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ]);
  });

  it("publishes nothing after the lease is lost", async () => {
    let release: (value: string) => void = () => undefined;
    const held = defineSession("held", {
      init: () => ({}),
      calls: {
        wait: call({
          run: () =>
            new Promise<string>((resolve) => {
              release = resolve;
            }),
        }),
      },
    });
    const worker = await rig.worker({ held }, { env: { WORKER_LEASE_TTL: "1s" }, timing: { closeMs: 100 } });
    const id = fresh();
    const on = await rig.open("held", id);
    const of = await rig.call(on, id, { name: "wait" });
    await rig.happening("call.started", (one) => one.of === of);
    // The test removes the lease: the next renewal finds out.
    await rig.bus.publish(`$KV.leases.session.${id}.1`, new Uint8Array(), {
      headers: { "KV-Operation": "DEL" },
    });
    await rig.happening("session.detached", (one) => one.sessionId === id && one.why === "fenced");
    release("too late");
    await rig.call(on, id, { name: "wait", of: 9201 });
    await rig.happening("completion.fenced", (one) => one.of === 9201);
    expect(rig.calls.filter((one) => one.of === of)).toEqual([]);
    expect(worker.happenings.some((one) => one.kind === "lease.lost")).toBe(true);
  });
});
