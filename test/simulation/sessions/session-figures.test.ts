/** What is known of a session in numbers, from its history and from its holder. */
import { expect, test } from "vitest";
import { z } from "zod";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { figuresOf } from "../../../shared/sessions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const calm = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;

const model = defineSession("model", {
  init: (ctx) => {
    ctx.reportModel({ name: "tiny", device: "cpu", loadMs: 5 });
    return {};
  },
  calls: {
    ask: call({
      input: z.boolean(),
      run: (_state, good) => {
        if (!good) throw new Error("no");
        return 1;
      },
    }),
  },
});
const warm = defineActivity("warm", { run: async () => null });
const app = collectApp({
  model,
  warm,
  asks: defineOrchestration("asks", {
    async run(ctx) {
      await using session = await ctx.openSession(model, {
        id: "s",
        recovery: { rebuild: { activity: warm } },
      });
      for (const good of [true, true, false]) await session.ask(good).catch(() => 0);
      await ctx.waitForSignal("go");
    },
  }),
});

test("describe says how old it is, what it did, and who had to make it again", async () => {
  const world = new World({ seed: 1, app, faults: calm });
  await world.prepare();
  const workers = [await world.worker(), await world.worker()];
  await world.orchestrator();
  await world.watcher();
  const describe = () => world.run(world.client.sessions.describe("s"));
  const until = async (holds: () => Promise<boolean>) => {
    for (let i = 0; i < 600; i++) {
      if (await holds()) return;
      await world.clock.advance(100);
    }
    throw new Error("it never held");
  };
  const handle = await world.start("asks", undefined, "a");
  await until(async () => (await world.run(world.client.sessions.list())).length === 1);
  await until(async () => (await describe()).figures.calls === 3);
  const { figures, record } = await describe();
  expect(figures).toMatchObject({ errors: 1, running: 0, queued: 0, modelLoads: 1, inits: 1, rebuilds: 0 });
  expect(figures.memory?.of).toBe("worker");
  expect(figures.owners.map(({ workerId }) => workerId)).toEqual([record.workerId]);
  await world.clock.advance(5_000);
  const later = (await describe()).figures;
  expect(later.ageMs - figures.ageMs).toBeGreaterThanOrEqual(5_000);
  expect((later.idleMs ?? 0) - (figures.idleMs ?? 0)).toBeGreaterThanOrEqual(5_000);
  workers.find(({ id }) => id === record.workerId)?.kill();
  await until(async () => (await describe()).figures.rebuilds === 1);
  await until(async () => (await describe()).figures.modelLoads === 1);
  const again = (await describe()).figures;
  expect(again.inits).toBe(2);
  expect(again.owners.length).toBe(2);
  await world.run(handle.signal("go"));
  await world.run(handle.result());
  const over = (await describe()).figures;
  await world.clock.advance(5_000);
  const closed = (await describe()).figures;
  // Its figures stay as they are: it has no holder.
  expect(closed.ageMs).toBe(over.ageMs);
  expect(closed).not.toHaveProperty("calls");
}, 60_000);

test("the memory of a host of its own is not the worker's, and a running call is use", async () => {
  const record = {
    ...{ v: 1, sessionId: "s", instanceId: "i", type: "t", phase: "active", attachment: 1 },
    ...{ requires: { tags: [], resources: {} }, metadata: {}, openedAt: 10, updatedAt: 20, owners: [] },
  } as unknown as Parameters<typeof figuresOf>[0];
  const live = { calls: 2, queued: 1, running: 1, since: 10, usedAt: 30, hostBytes: 7 };
  const of = (more: object) =>
    figuresOf(record, { rssBytes: 99 } as never, { ...live, ...more } as never, 100);
  expect(of({})).toMatchObject({ ageMs: 90, idleMs: 0, memory: { of: "host", bytes: 7 } });
  expect(of({ running: 0, hostBytes: undefined })).toMatchObject({
    idleMs: 70,
    memory: { of: "worker", bytes: 99 },
  });
  // A worker of an older version says less.
  expect(of({ running: 0, usedAt: undefined })).not.toHaveProperty("idleMs");
  expect(figuresOf(record, undefined, undefined, 100)).toEqual({
    ageMs: 90,
    blobs: 0,
    blobBytes: 0,
    inits: 0,
    rebuilds: 0,
    owners: [],
  });
});
