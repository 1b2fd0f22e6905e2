import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { type Lease, type LossWhy, ThreadedLeaseKeeper } from "../../../shared/leases/index.ts";
import { type Happening, systemRuntime } from "../../../shared/runtime/index.ts";

/** Grants every claim for a minute, and ends when asked for the key `die`. */
const thread = `
  const { parentPort } = require("node:worker_threads");
  parentPort.postMessage({ kind: "ready" });
  parentPort.on("message", (message) => {
    if (message.kind === "stop") return parentPort.postMessage({ kind: "stopped" });
    if (message.kind !== "claim") return;
    if (message.key === "die") process.exit(1);
    const until = process.hrtime.bigint() / 1000n + 60000000n;
    Atomics.store(new BigInt64Array(message.heldUntil), 0, until);
    parentPort.postMessage({ kind: "answer", id: message.id, answer: { kind: "granted", epoch: message.id, ttlMs: 1000 } });
  });`;

test("a thread that dies takes its leases with it, and the next claim starts another (LEASE-10)", async () => {
  const happenings: Happening[] = [];
  const lost: { lease: Lease; why: LossWhy }[] = [];
  let spawned = 0;
  const keeper = new ThreadedLeaseKeeper({
    connection: { url: "unused" },
    bucket: "leases",
    runtime: systemRuntime((happening) => happenings.push(happening)),
    ttlMs: 1000,
    spawn: () => {
      spawned++;
      return new Worker(thread, { eval: true });
    },
  });
  keeper.onLost((lease, why) => lost.push({ lease, why }));
  await keeper.start();
  const value = { v: 1 as const, holder: "w1" };
  const first = await keeper.claim("a", value);
  if (first.kind !== "granted") throw new Error("not granted");
  expect(keeper.isHeld(first.lease)).toBe(true);

  await expect(keeper.claim("die", value)).rejects.toMatchObject({
    kind: "transient",
    code: "lease_thread_unavailable",
  });
  expect(keeper.isHeld(first.lease)).toBe(false);
  expect(lost).toEqual([{ lease: first.lease, why: "expired" }]);
  expect(happenings).toMatchObject([{ kind: "fault", code: "lease_thread_died" }]);

  expect(await keeper.claim("b", value)).toMatchObject({ kind: "granted" });
  expect(spawned).toBe(2);
  await keeper.stop();
  await expect(keeper.claim("c", value)).rejects.toMatchObject({ kind: "transient" });
});
