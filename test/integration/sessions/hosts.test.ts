import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { StreamChunk } from "../../../schemas/index.ts";
import * as app from "../../support/apps/isolated-app.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

const appPath = fileURLToPath(new URL("../../support/apps/isolated-app.ts", import.meta.url));

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

let serial = 0;
const fresh = (): string => `h${++serial}`;
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const untilGone = (pid: number) => rig.poll(`the end of ${pid}`, async () => !isAlive(pid));

describe.each(["threaded", "processed"])("a session in a host of its own: %s", (type) => {
  it("lives where its code runs, and answers like any other", async () => {
    const { workerId } = await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open(type, id);
    const call = async (name: string, input?: unknown) => rig.output(await rig.call(on, id, { name, input }));
    const where = (await call("where")) as { pid: number; isMainThread: boolean; omp: string };
    expect(where.omp).toMatch(/^\d+$/);
    if (type === "threaded") expect(where).toMatchObject({ pid: process.pid, isMainThread: false });
    else expect(where.pid).not.toBe(process.pid);
    expect(await call("count", 2)).toBe(2);
    expect(await call("count", 3)).toBe(5);
    expect(await call("retried"), "defect 31").toBe(3);
    expect(await call("keep", ["a", "some bytes"])).toEqual({
      bytes: 10,
      found: "some bytes",
      names: ["a"],
      deleted: [true, false],
    });
    expect(await rig.result(await rig.call(on, id, { name: "fail" }))).toMatchObject({
      kind: "failed",
      error: { code: "asked_for", message: "as asked", retryable: false, details: { a: 1 } },
    });
    expect(await rig.result(await rig.call(on, id, { name: "weird" }))).toMatchObject({
      kind: "failed",
      error: { code: "not_serialisable", retryable: false },
    });
    const of = await rig.call(on, id, { name: "stream", input: 3 });
    expect(await rig.output(of)).toBe(3);
    const chunks = await rig.bus.read(rig.names.streamsStream, rig.names.stream("i1", 1, of));
    const read = chunks?.map(
      ({ body }) => StreamChunk.parse(JSON.parse(new TextDecoder().decode(body))).chunk,
    );
    expect(read).toEqual([{ json: { i: 0 } }, { json: { i: 1 } }, { json: { i: 2 } }]);
    await rig.happening("work.log", (one) => one.sessionId === id && one.message === "streamed");
    const waiting = await rig.call(on, id, { name: "wait" });
    await rig.happening("call.started", (one) => one.of === waiting);
    await rig.work(workerId, id, { kind: "cancel", epoch: on.epoch, execution: 1, of: waiting } as never);
    await rig.work(workerId, id, { kind: "event", name: "hello", payload: { json: 7 } } as never);
    expect(await call("next")).toEqual({ name: "hello", payload: 7 });
    await rig.call(on, id, { name: "giveUp", input: "enough" });
    expect(await rig.heard(id, "lost")).toMatchObject({ reason: "aborted", detail: "enough" });
  });

  it("is lost alone when its host crashes, with the code and the last words", async () => {
    await rig.worker(app, { appPath });
    const [id, other] = [fresh(), fresh()];
    const on = await rig.open(type, id);
    const onOther = await rig.open("hanging-process", other);
    const of = await rig.call(on, id, { name: "crash", input: 3 });
    await rig.call(on, id, { name: "count", input: 1 });
    const lost = await rig.heard(id, "lost");
    expect(lost.reason).toBe("crashed");
    // Defect 34: the call that waited behind it had not begun.
    expect(lost.running).toEqual([{ instanceId: "i1", execution: 1, of, attempt: 1 }]);
    expect(lost.detail).toContain("exit code 3");
    expect(lost.detail).toContain("the model is on fire");
    expect(await rig.output(await rig.call(onOther, other, { name: "count", input: 1 }))).toBe(1);
    const again = await rig.open(type, id, { attachment: 2 });
    expect(await rig.output(await rig.call(again, id, { name: "count", input: 1 }))).toBe(1);
  });

  it("survives nothing it throws outside of a call, but the worker does", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open(type, id);
    await rig.call(on, id, { name: "throwLater" });
    const lost = await rig.heard(id, "lost");
    expect(lost).toMatchObject({ reason: "crashed", detail: expect.stringContaining("nobody catches this") });
    await rig.open(type, fresh());
  });

  it("keeps the worker's own loop free while it computes", async () => {
    await rig.worker(app, { appPath, env: { WORKER_LEASE_TTL: "1s" } });
    const id = fresh();
    const on = await rig.open(type, id);
    const of = await rig.call(on, id, { name: "block", input: 2200 });
    expect(await rig.output(of)).toBe("done");
    expect(rig.kinds(id)).not.toContain("lost");
  });
});

describe("hosts", () => {
  it("share a thread up to their number, and give each process one", async () => {
    await rig.worker(app, { appPath });
    const where = async (type: string) => {
      const id = fresh();
      const on = await rig.open(type, id);
      return (await rig.output(await rig.call(on, id, { name: "where" }))) as {
        pid: number;
        threadId: number;
      };
    };
    const threads = [await where("threaded"), await where("threaded"), await where("threaded")];
    expect(new Set(threads.map((one) => one.threadId)).size).toBe(2);
    const processes = [await where("processed"), await where("processed")];
    expect(new Set(processes.map((one) => one.pid)).size).toBe(2);
    await rig.stopWorkers();
    for (const { pid } of processes) await untilGone(pid);
  });

  it.each(["hanging-thread", "hanging-process"])("that hang are ended: %s", async (type) => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open(type, id);
    const { pid } = (await rig.output(await rig.call(on, id, { name: "where" }))) as { pid: number };
    await rig.call(on, id, { name: "block", input: 60_000 });
    const lost = await rig.heard(id, "lost");
    expect(lost).toMatchObject({ reason: "hung", detail: expect.stringContaining("did not answer") });
    if (type === "hanging-process") expect(isAlive(pid)).toBe(false);
    await rig.open(type, fresh());
  });

  it("take what they started along", async () => {
    const { workerId } = await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("processed", id);
    const child = (await rig.output(await rig.call(on, id, { name: "child" }))) as number;
    const { pid } = (await rig.output(await rig.call(on, id, { name: "where" }))) as { pid: number };
    expect(isAlive(child)).toBe(true);
    await rig.work(workerId, id, { kind: "close", epoch: on.epoch } as never);
    await untilGone(pid);
    await untilGone(child);
  });

  it("that have served enough hand their state over, unnoticed", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("recycled-by-move", id);
    const pids = new Set<number>();
    for (let i = 1; i <= 5; i++) {
      expect(await rig.output(await rig.call(on, id, { name: "count", input: 1 }))).toBe(i);
      const where = await rig.output(await rig.call(on, id, { name: "where" }));
      pids.add((where as { pid: number }).pid);
    }
    expect(pids.size).toBeGreaterThan(2);
    expect(rig.kinds(id)).toEqual(["activated"]);
    await rig.stopWorkers();
    for (const pid of pids) await untilGone(pid);
  });

  it.each(["recycled-by-age", "recycled-by-size"])(
    "hand their state over when they are old or large: %s",
    async (type) => {
      await rig.worker(app, { appPath });
      const id = fresh();
      const on = await rig.open(type, id);
      const pids = new Set<number>();
      let counted = 0;
      await rig.poll("a second host", async () => {
        expect(await rig.output(await rig.call(on, id, { name: "count", input: 1 }))).toBe(++counted);
        const where = await rig.output(await rig.call(on, id, { name: "where" }));
        pids.add((where as { pid: number }).pid);
        return pids.size > 1;
      });
      expect(rig.kinds(id), "between calls, unnoticed").toEqual(["activated"]);
      await rig.stopWorkers();
      for (const pid of pids) await untilGone(pid);
    },
  );

  it.each(["threaded", "processed"])("limit the threads of maths libraries: %s", async (type) => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open(type, id);
    const input = [
      ...["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"],
      "VECLIB_MAXIMUM_THREADS",
    ];
    const set = (await rig.output(await rig.call(on, id, { name: "environment", input }))) as object;
    expect(Object.keys(set)).toEqual(input);
    for (const limit of Object.values(set)) expect(Number(limit)).toBeGreaterThanOrEqual(1);
    // Libraries that read no variable are limited by code.
    const [omp] = Object.values(set);
    expect(await rig.output(await rig.call(on, id, { name: "threads" }))).toBe(Number(omp));
  });

  it("have GPUs of their own where the worker has several", async () => {
    await rig.worker(app, { appPath, env: { WORKER_RESOURCES: "gpu=2" } });
    const seen: unknown[] = [];
    for (const id of [fresh(), fresh()]) {
      const on = await rig.open("processed", id);
      const input = ["CUDA_VISIBLE_DEVICES"];
      seen.push(await rig.output(await rig.call(on, id, { name: "environment", input })));
    }
    expect(seen).toEqual([{ CUDA_VISIBLE_DEVICES: "0" }, { CUDA_VISIBLE_DEVICES: "1" }]);
  });

  it("that have served enough give up what can be made anew, and keep what cannot", async () => {
    await rig.worker(app, { appPath });
    const [kept, given] = [fresh(), fresh()];
    const onKept = await rig.open("recycled-by-loss", kept, { onLost: "fail" });
    const onGiven = await rig.open("recycled-by-loss", given, { onLost: "reclaim" });
    for (let i = 0; i < 3; i++) {
      await rig.output(await rig.call(onKept, kept, { name: "count", input: 1 }));
      await rig.output(await rig.call(onGiven, given, { name: "count", input: 1 }));
    }
    expect(await rig.heard(given, "lost")).toMatchObject({ reason: "recycled" });
    expect(await rig.output(await rig.call(onKept, kept, { name: "count", input: 1 }))).toBe(4);
  });

  it("cannot be had without the application's file", async () => {
    await rig.worker(app);
    const id = fresh();
    await rig.claim("processed", id);
    expect((await rig.heard(id, "init_failed")).error).toMatchObject({
      code: "no_app_file",
      message: expect.stringContaining('isolation "process"'),
    });
  });

  it("say why they cannot load it", async () => {
    await rig.worker(app, { appPath: "/nowhere/app.ts" });
    for (const type of ["threaded", "processed"]) {
      const id = fresh();
      await rig.claim(type, id);
      expect((await rig.heard(id, "init_failed")).error).toMatchObject({ code: "app_not_found" });
    }
  });
});
