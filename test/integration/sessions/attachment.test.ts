import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WorkerInfo } from "../../../schemas/index.ts";
import { call, defineActivity, defineSession } from "../../../shared/definitions/index.ts";
import { SessionLostError } from "../../../shared/errors/index.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";
import { counter, fresh } from "./counter-session.ts";

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

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
