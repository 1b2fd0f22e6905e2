/** What people and code note down about a session, in the whole engine. */
import { expect, test } from "vitest";
import { z } from "zod";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { fixedGeneration } from "../../../shared/fleet/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { type Member, World } from "../../../shared/testing/world/world.ts";

const calm = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;
let world: World;

const editor = defineSession("editor", {
  init: (ctx) => {
    ctx.session.setMetadata({ loaded: `${ctx.session.epoch}` });
    return {};
  },
  calls: {
    note: call({
      input: z.record(z.string(), z.string().nullable()),
      run: (_state, change, ctx) => {
        ctx.session.setMetadata(change);
        return ctx.session.metadata;
      },
    }),
    often: call({
      input: z.number(),
      run: (_state, times, ctx) => {
        for (let i = 1; i <= times; i++) ctx.session.setMetadata({ step: String(i) });
      },
    }),
    seen: call({ run: (_state, _input: undefined, ctx) => ({ ...ctx.session.metadata }) }),
  },
});

const app = collectApp({
  editor,
  edits: defineOrchestration("edits", {
    async run(ctx) {
      await using session = await ctx.openSession(editor, {
        id: "s",
        onLost: "reclaim",
        metadata: { team: "a" },
      });
      session.setMetadata({ phase: "first" });
      await session.note({ by: "call" });
      await session.often(1000);
      await ctx.waitForSignal("go");
      return { inside: await session.seen(undefined), info: session.info.metadata };
    },
  }),
  joins: defineOrchestration("joins", {
    async run(ctx) {
      await using session = await ctx.session(editor, { key: "k" });
      session.setMetadata({ mine: "yes" });
    },
  }),
});

async function open(): Promise<Member[]> {
  world = new World({ seed: 1, app, faults: calm });
  await world.prepare();
  return [await world.worker(), await world.worker()];
}
const run = <T>(work: Promise<T>) => world.run(work);
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (await holds()) return;
    await world.clock.advance(100);
  }
  throw new Error("it never held");
}
const metadata = async (id: string) => (await run(world.client.sessions.describe(id))).record.metadata;
const listed = async (wanted: Record<string, string>) =>
  (await run(world.client.sessions.list({ metadata: wanted }))).map(({ sessionId }) => sessionId);

test("calls, init and the orchestration note down what is listed by, and it survives the death of the holder", async () => {
  const workers = await open();
  await world.orchestrator();
  await world.watcher();
  const handle = await world.start("edits", undefined, "a");
  await until(async () => (await listed({ step: "1000" })).length === 1);
  const before = await metadata("s");
  expect(before).toMatchObject({ team: "a", phase: "first", by: "call", step: "1000" });
  expect(await listed({ by: "call", phase: "first" })).toEqual(["s"]);
  expect(await listed({ by: "nobody" })).toEqual([]);
  const { record } = await run(world.client.sessions.describe("s"));
  workers.find(({ id }) => id === record.workerId)?.kill();
  await until(async () => (await metadata("s")).loaded !== before.loaded);
  await run(handle.signal("go"));
  const result = (await run(handle.result())) as { inside: unknown; info: unknown };
  // The next holder begins with all that was noted down.
  expect(result.inside).toEqual(await metadata("s"));
  expect(result.info).toEqual(result.inside);
  const history = (await world.history("a")) ?? [];
  checkHistory(history);
  const told = history
    .flatMap(({ events }) => events)
    .filter(({ kind }) => kind === "session.metadata_reported");
  // A thousand changes are a few reports.
  expect(told.length).toBeLessThan(10);
}, 60_000);

test("a session by key is noted down from its calls, and an instance that joined it may not", async () => {
  await open();
  await world.orchestrator();
  await world.watcher();
  const session = world.client.session(editor, { key: "k" });
  expect(await run(session.note({ owner: "ada" }))).toMatchObject({ owner: "ada", "holdfast-key": "k" });
  await until(async () => (await listed({ owner: "ada" })).length === 1);
  expect(await run(session.call("note", { "holdfast-key": "other" }).catch((error) => error.code))).toBe(
    "invalid_metadata",
  );
  expect(await run(session.note({ owner: null }))).not.toHaveProperty("owner");
  await until(async () => (await listed({ owner: "ada" })).length === 0);
  const handle = await world.start("joins", undefined, "a");
  await expect(run(handle.result())).rejects.toMatchObject({ code: "session_unusable" });
}, 60_000);

test("while an older process is alive nothing is written that it cannot read", async () => {
  await open();
  await world.orchestrator(undefined, { generation: fixedGeneration(1) });
  const handle = await world.start("edits", undefined, "a");
  await expect(world.run(handle.result(), 60_000)).rejects.toMatchObject({ code: "needs_newer_fleet" });
});
