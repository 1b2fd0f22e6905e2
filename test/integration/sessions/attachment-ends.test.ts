import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  call,
  defineActivity,
  defineSession,
  type SessionTypeOptions,
} from "../../../shared/definitions/index.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";
import { counter, fresh } from "./counter-session.ts";

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

describe("the end of an attachment", () => {
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
    await rig.happening("session.detached", (one) => one.sessionId === id);
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
    await rig.heard(id, "parked");
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
});
