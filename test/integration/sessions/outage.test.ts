import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { call, defineSession } from "../../../shared/definitions/index.ts";
import { startWorkerProcess } from "../../support/processes/worker-process.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

let serial = 0;
const fresh = (): string => `o${++serial}`;

let release: () => void = () => undefined;
const gone: string[] = [];
const counter = defineSession("counter", {
  leaseTtl: "1s",
  init: (ctx) => ({ n: 0, id: ctx.session.id }),
  calls: {
    add: call({ run: (state, by: number) => (state.n += by) }),
    wait: call({
      run: () =>
        new Promise<void>((resolve) => {
          release = resolve;
        }),
    }),
    epoch: call({ run: (_state, _input, ctx) => [ctx.session.epoch, ctx.session.attachment] }),
  },
  shutdown: (state) => {
    gone.push(state.id);
  },
});

describe("an outage of the bus longer than the TTL (S14)", () => {
  it("keeps clean states warm and drops dirty ones", async () => {
    await rig.worker({ counter }, { timing: { closeMs: 200 } });
    const [clean, dirty] = [fresh(), fresh()];
    const on = await rig.open("counter", clean);
    const onDirty = await rig.open("counter", dirty);
    expect(await rig.output(await rig.call(on, clean, { name: "add", input: 7 }))).toBe(7);
    const stuck = await rig.call(onDirty, dirty, { name: "wait" });
    await rig.happening("call.started", (one) => one.of === stuck);
    await rig.nats.kill();
    await rig.happening("lease.lost", (one) => one.key === `session.${clean}.1`);
    await rig.happening("session.detached", (one) => one.sessionId === dirty);
    release();
    await rig.nats.restart();
    const again = await rig.heard(clean, "activated", 2);
    expect(again).toMatchObject({ warm: true, restored: false });
    expect(again.on.epoch).toBeGreaterThan(on.epoch);
    expect(await rig.output(await rig.call(again.on, clean, { name: "add", input: 1 }))).toBe(8);
    expect(await rig.output(await rig.call(again.on, clean, { name: "epoch" }))).toEqual([again.on.epoch, 2]);
    // Under the old right nothing is served.
    await rig.call(on, clean, { name: "add", input: 100, of: 7001 });
    await rig.happening("completion.fenced", (one) => one.of === 7001);
    expect(rig.kinds(dirty)).toEqual(["activated"]);
    expect(rig.calls.some((one) => one.of === stuck)).toBe(false);
    expect(gone).toContain(dirty);
    expect(gone).not.toContain(clean);
  });

  it("leaves a session to whoever was asked meanwhile", async () => {
    const worker = await rig.worker({ counter });
    const id = fresh();
    await rig.open("counter", id);
    // Another worker has the next attachment already when the lease expires.
    await rig.bus.publish(`$KV.leases.session.${id}.2`, new TextEncoder().encode("{}"));
    await rig.nats.kill();
    await rig.happening("lease.lost", (one) => one.key === `session.${id}.1`);
    await rig.nats.restart();
    await rig.poll("the state gone", async () => gone.includes(id));
    expect(rig.kinds(id)).toEqual(["activated"]);
    expect(worker.leases.held()).toEqual([]);
  });
});

describe("a worker that dies", () => {
  const appPath = fileURLToPath(new URL("../../support/apps/isolated-app.ts", import.meta.url));
  const isAlive = (pid: number): boolean => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };

  it("leaves no lease and no process behind, and its successor has the session with a higher epoch", async () => {
    const env = { WORKER_LEASE_TTL: "1s", WORKER_NODE_ID: "node-1" };
    const first = await startWorkerProcess(rig.nats.url, appPath, env);
    const [id, inProcess] = [fresh(), fresh()];
    const on = await rig.open("threaded", id);
    const onProcess = await rig.open("processed", inProcess);
    const where = await rig.output(await rig.call(onProcess, inProcess, { name: "where" }));
    const { pid } = where as { pid: number };
    // Deaf to the closing of its channel: only the watching thread can end it.
    await rig.call(onProcess, inProcess, { name: "block", input: 60_000 });
    expect(isAlive(pid)).toBe(true);
    first.kill("SIGKILL");
    await first.exited;
    await rig.poll("the host gone", async () => !isAlive(pid));
    // The process host releases the lease when it sees its worker die (DEATH-1), unless the lease expires first.
    await rig.poll("the lease over", async () => {
      const last = await rig.bus.last("KV_leases", `$KV.leases.session.${id}.1`);
      return last?.headers["KV-Operation"] === "PURGE" || last?.headers["Nats-Marker-Reason"] === "MaxAge";
    });
    const second = await startWorkerProcess(rig.nats.url, appPath, env);
    try {
      await rig.call(on, id, { name: "count", input: 1, of: 8001 });
      const again = await rig.open("threaded", id, { attachment: 2 });
      expect(again.epoch).toBeGreaterThan(on.epoch);
      expect(again.nodeId).toBe("node-1");
      expect(again.workerId).not.toBe(on.workerId);
      expect(await rig.output(await rig.call(again, id, { name: "count", input: 1 }))).toBe(1);
      expect(rig.calls.some((one) => one.of === 8001)).toBe(false);
    } finally {
      second.kill("SIGTERM");
      await second.exited;
    }
    await rig.heard(id, "lost", 2);
  });
});
