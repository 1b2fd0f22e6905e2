import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { call, defineSession } from "../../../shared/definitions/index.ts";
import { saved } from "../../support/apps/isolated-app.ts";
import { blobKeys } from "../../support/nats/blob-keys.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

let serial = 0;
const fresh = (): string => `d${++serial}`;
const blobs = (id: string) => blobKeys(rig.bus.blobs, `checkpoints/${id}/`);

describe("checkpoints", () => {
  it("are written after every n calls, told, kept few, and gone with the session", async () => {
    const { workerId } = await rig.worker({ saved });
    const id = fresh();
    const on = await rig.open("saved", id);
    for (let i = 0; i < 7; i++) await rig.output(await rig.call(on, id, { name: "count", input: 1 }));
    await rig.until("three checkpoints", () =>
      rig.kinds(id).filter((kind) => kind === "checkpointed").length === 3 ? true : undefined,
    );
    const refs = rig.told.flatMap(({ sessionId, report }) =>
      sessionId === id && report.kind === "checkpointed" ? [report.checkpoint] : [],
    );
    expect(refs.map((ref) => ref.calls)).toEqual([2, 4, 6]);
    expect(refs.every((ref) => ref.epoch === on.epoch)).toBe(true);
    await rig.poll("the older ones gone", async () => (await blobs(id)).length === 2);
    await rig.work(workerId, id, { kind: "close", epoch: on.epoch } as never);
    await rig.poll("all gone", async () => (await blobs(id)).length === 0);
  });

  it("are written on drain, and the state goes on elsewhere", async () => {
    const first = await rig.worker({ saved });
    const id = fresh();
    const on = await rig.open("saved", id);
    for (let i = 0; i < 3; i++) await rig.output(await rig.call(on, id, { name: "count", input: 5 }));
    const second = await rig.worker({ saved });
    await rig.stopWorker(first);
    const lost = await rig.heard(id, "lost");
    expect(lost).toMatchObject({ reason: "drained", epoch: on.epoch });
    const kinds = rig.kinds(id);
    expect(kinds.lastIndexOf("checkpointed")).toBeLessThan(kinds.indexOf("lost"));
    const checkpoint = rig.told.flatMap(({ sessionId, report }) =>
      sessionId === id && report.kind === "checkpointed" ? [report.checkpoint] : [],
    );
    const restore = checkpoint.at(-1);
    expect(restore?.calls).toBe(3);
    const next = await rig.open("saved", id, { attachment: 2, ...(restore ? { restore } : {}) });
    expect(next.workerId).toBe(second.workerId);
    expect(await rig.heard(id, "activated", 2)).toMatchObject({ restored: true, warm: false });
    expect(await rig.output(await rig.call(next, id, { name: "count", input: 1 }))).toBe(16);
  });

  it("are written on parking, once, because a parked session comes back as it went", async () => {
    await rig.worker({ saved });
    const id = fresh();
    const on = await rig.open("saved", id, { idleTimeoutMs: 100 });
    await rig.output(await rig.call(on, id, { name: "count", input: 4 }));
    await rig.heard(id, "parked");
    expect(rig.kinds(id)).toEqual(["activated", "checkpointed", "parked"]);
    const { checkpoint } = await rig.heard(id, "checkpointed");
    await rig.open("saved", id, { attachment: 2, idleTimeoutMs: 100, restore: checkpoint });
    await rig.heard(id, "parked", 2);
    // Nothing was called: what was saved still holds.
    expect(rig.kinds(id).filter((kind) => kind === "checkpointed")).toHaveLength(1);
    expect(await blobs(id)).toEqual([checkpoint.key]);
  });

  it("defect 35: decide whether a session parks that did not ask for it", async () => {
    let broken = true;
    const calls = { count: call({ run: (state: { n: number }, by: number) => (state.n += by) }) };
    const lossless = defineSession("lossless", {
      init: () => ({ n: 0 }),
      calls,
      checkpoint: ({ n }) => {
        if (broken) throw new Error("the disk is full");
        return Uint8Array.of(n);
      },
      restore: (_ctx, _config, bytes) => ({ n: bytes[0] ?? 0 }),
    });
    const lossy = defineSession("lossy", { init: () => ({ n: 0 }), calls });
    await rig.worker({ lossless, lossy }, { env: { WORKER_IDLE_TIMEOUT: "100ms" } });
    const [id, other] = [fresh(), fresh()];
    const on = await rig.open("lossless", id);
    const onOther = await rig.open("lossy", other);
    await rig.output(await rig.call(on, id, { name: "count", input: 3 }));
    // A state that cannot be saved stays.
    const failedTwice = () => rig.happenings.filter(({ kind }) => kind === "fault").length >= 2 || undefined;
    await rig.until("two failed checkpoints", failedTwice);
    expect(rig.kinds(id)).not.toContain("parked");
    broken = false;
    await rig.heard(id, "parked");
    const { checkpoint } = await rig.heard(id, "checkpointed");
    const again = await rig.open("lossless", id, { attachment: 2, restore: checkpoint });
    expect(await rig.output(await rig.call(again, id, { name: "count", input: 1 }))).toBe(4);
    // Idle all the while, and parking was not asked for.
    expect(await rig.output(await rig.call(onOther, other, { name: "count", input: 1 }))).toBe(1);
    expect(rig.kinds(other)).not.toContain("parked");
  });

  it("that fail or are too large are said, and the session goes on", async () => {
    let mode: "throw" | "large" | "text" = "throw";
    const fragile = defineSession("fragile", {
      checkpointEvery: 1,
      init: () => ({ n: 0 }),
      calls: { add: call({ run: (state) => ++state.n }) },
      checkpoint: () => {
        if (mode === "throw") throw new Error("disk full");
        return mode === "large" ? new Uint8Array(2000) : ("text" as never);
      },
      restore: () => ({ n: 0 }),
    });
    await rig.worker({ fragile }, { timing: { maxCheckpointBytes: 1000 } });
    const id = fresh();
    const on = await rig.open("fragile", id);
    expect(await rig.output(await rig.call(on, id, { name: "add" }))).toBe(1);
    await rig.happening("fault", (one) => one.message === "disk full");
    mode = "large";
    expect(await rig.output(await rig.call(on, id, { name: "add" }))).toBe(2);
    await rig.happening("fault", (one) => one.code === "checkpoint_too_large");
    mode = "text";
    expect(await rig.output(await rig.call(on, id, { name: "add" }))).toBe(3);
    await rig.happening("fault", (one) => one.code === "invalid_checkpoint");
    expect(await rig.output(await rig.call(on, id, { name: "add" }))).toBe(4);
    expect(await blobs(id)).toEqual([]);
  });

  it("that are gone fail the attachment by name", async () => {
    await rig.worker({ saved });
    const id = fresh();
    await rig.claim("saved", id, { restore: { key: `checkpoints/${id}/1-1`, bytes: 1, epoch: 1, calls: 1 } });
    expect((await rig.heard(id, "init_failed")).error.code).toBe("checkpoint_missing");
  });
});

describe("drain", () => {
  it("finishes what runs, drops what waits, holds the lease until the end, and claims nothing more", async () => {
    let finish: (value: string) => void = () => undefined;
    const shutdowns: string[] = [];
    const slow = defineSession("slow", {
      init: (ctx) => ctx.session.id,
      calls: {
        wait: call({
          run: () =>
            new Promise<string>((resolve) => {
              finish = resolve;
            }),
        }),
      },
      shutdown: (state) => {
        shutdowns.push(state);
      },
    });
    const worker = await rig.worker({ slow });
    const [id, other] = [fresh(), fresh()];
    const on = await rig.open("slow", id);
    const running = await rig.call(on, id, { name: "wait" });
    const waiting = await rig.call(on, id, { name: "wait" });
    await rig.happening("call.started", (one) => one.of === running);
    const stopped = rig.stopWorker(worker);
    await rig.claim("slow", other);
    await rig.happening("worker.draining", (one) => one.workerId === worker.workerId);
    expect(worker.leases.held()).toHaveLength(1);
    finish("finished");
    expect(await rig.output(running)).toBe("finished");
    expect(await rig.heard(id, "lost")).toMatchObject({ reason: "drained" });
    await stopped;
    expect(shutdowns).toEqual([id]);
    expect(rig.calls.some((one) => one.of === waiting)).toBe(false);
    expect(rig.kinds(other)).toEqual([]);
    const order = [...rig.calls.map((one) => one.of)].indexOf(running);
    expect(order).toBeGreaterThanOrEqual(0);
  });

  it("does not wait for ever", async () => {
    const stuck = defineSession("stuck", {
      init: () => ({}),
      calls: { hang: call({ run: () => new Promise<void>(() => undefined) }) },
    });
    const worker = await rig.worker(
      { stuck },
      { env: { WORKER_DRAIN_TIMEOUT: "200ms" }, timing: { closeMs: 100 } },
    );
    const id = fresh();
    const on = await rig.open("stuck", id);
    const of = await rig.call(on, id, { name: "hang" });
    await rig.happening("call.started", (one) => one.of === of);
    await rig.stopWorker(worker);
    await rig.heard(id, "lost");
  });
});
