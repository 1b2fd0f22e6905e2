/** What users' own schemas do to work that is under way when they change (docs/deploying-changed-code.md). */
import { expect, test } from "vitest";
import { z } from "zod";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const quick = defineActivity("quick", { run: () => "done" });

const deployment = (input: z.ZodType<unknown>) =>
  collectApp({
    quick,
    order: defineOrchestration("order", {
      input,
      async run(ctx) {
        await ctx.run(quick, null);
        const approved = z.object({ by: z.string() }).safeParse(await ctx.waitForSignal("approved"));
        if (!approved.success) throw new Error(`approved: ${z.prettifyError(approved.error)}`);
        await ctx.run(quick, null);
        return approved.data.by;
      },
    }),
  });

const first = z.object({ item: z.string() });
const widened = z.object({ item: z.string(), count: z.number().default(1) });
const narrowed = z.object({ item: z.string(), count: z.number() });

async function underWay(): Promise<{ world: World; result: Promise<unknown>; stop: () => Promise<void> }> {
  const app = deployment(first);
  const world = new World({ seed: 5, app, faults: noFaults });
  await world.prepare();
  const orchestrator = await world.orchestrator();
  await world.worker();
  const handle = await world.start("order", { item: "book" }, "a");
  await world.clock.advance(2000);
  const result = handle.result();
  result.catch(() => undefined); // looked at by the test
  return { world, result, stop: () => world.run(orchestrator.stop()) };
}

test("a new field with a default: what is under way goes on with it", async () => {
  const { world, result, stop } = await underWay();
  await stop();
  await world.orchestrator(undefined, { app: deployment(widened) });
  await world.signal("a", "approved", { by: "me" });
  expect(await world.run(result, 60_000)).toBe("me");
});

test("a schema that refuses an input it accepted before parks what is under way, and says whose input", async () => {
  const { world, result, stop } = await underWay();
  await stop();
  const broken = await world.orchestrator(undefined, { app: deployment(narrowed) });
  await world.signal("a", "approved", { by: "me" });
  await world.clock.advance(5000);
  const status = await world.run(world.client.status("a"));
  expect(status.status).toBe("parked");
  expect(`${status.error?.code} ${status.error?.message}`).toMatch(/input of "order"/);
  // Put right, it goes on from where it was.
  await world.run(broken.stop());
  await world.orchestrator(undefined, { app: deployment(widened) });
  expect(await world.run(result, 60_000)).toBe("me");
});

test("a signal has the schema its code checks it with: what does not fit fails where the code says so", async () => {
  const { world, result } = await underWay();
  await world.signal("a", "approved", "yes");
  await expect(world.run(result, 60_000)).rejects.toThrow(/approved: .*expected object/s);
});

const session = (config: z.ZodType<unknown>, restore: (bytes: Uint8Array) => { n: number }) =>
  defineSession("counter", {
    config,
    idleTimeout: "1s",
    init: () => ({ n: 0 }),
    checkpoint: (state: { n: number }) => new TextEncoder().encode(JSON.stringify(state)),
    restore: (_ctx, _config, bytes) => restore(bytes),
    calls: { count: call({ run: (state: { n: number }) => ++state.n }) },
  });

async function heldThrough(before: ReturnType<typeof session>, after: ReturnType<typeof session>) {
  const app = (counter: typeof before) =>
    collectApp({
      counter,
      holds: defineOrchestration("holds", {
        async run(ctx) {
          const held = await ctx.openSession(counter, {
            config: { model: "small" },
            onLost: "restore",
            maxInitAttempts: 2,
            creationTimeout: "5m",
            leaseTtl: "3s",
          });
          await held.count(null);
          await ctx.waitForSignal("go");
          return held.count(null);
        },
      }),
    });
  const world = new World({ seed: 9, app: app(before), faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  const worker = await world.worker();
  const handle = await world.start("holds", null, "a");
  // Parked after idling, its state is in a checkpoint.
  await world.clock.advance(10_000);
  await world.run(worker.stop());
  await world.worker(undefined, { app: app(after) });
  await world.signal("a", "go", null);
  const result = handle.result();
  return { world, result };
}

const readJson = (bytes: Uint8Array): { n: number } => JSON.parse(new TextDecoder().decode(bytes));
const anyConfig = z.object({ model: z.string() });

test("old bytes of a checkpoint go to the new restore, which may read what the old code wrote", async () => {
  const { world, result } = await heldThrough(session(anyConfig, readJson), session(anyConfig, readJson));
  expect(await world.run(result, 600_000)).toBe(2);
});

test("a restore that cannot read old bytes fails the session with its own words", async () => {
  const strict = (): { n: number } => {
    throw new Error("checkpoint of version 1, this code reads version 2");
  };
  const { world, result } = await heldThrough(session(anyConfig, readJson), session(anyConfig, strict));
  await expect(world.run(result, 600_000)).rejects.toThrow(/this code reads version 2/);
});

test("a config the new schema refuses fails the session and names the field", async () => {
  const narrow = z.object({ model: z.string(), device: z.string() });
  const { world, result } = await heldThrough(session(anyConfig, readJson), session(narrow, readJson));
  await expect(world.run(result, 600_000)).rejects.toThrow(/config of session type counter: device/);
});
