/** What code inside a session stores under names, in the whole engine. */
import { expect, test } from "vitest";
import { z } from "zod";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { fixedGeneration } from "../../../shared/fleet/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { type Member, sessionTtlMs, World } from "../../../shared/testing/world/world.ts";

const calm = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;
let world: World;

const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();
const bytesOf = (of: string) => new TextEncoder().encode(of);

const programs = defineSession("programs", {
  init: async (ctx) => {
    const before = text(await ctx.session.blobs.get("made")) ?? "";
    await ctx.session.blobs.put("made", bytesOf(`${before}${ctx.session.attachment};`));
    return { before };
  },
  calls: {
    put: call({
      input: z.object({ name: z.unknown().optional(), data: z.unknown().optional() }),
      run: async (_state, { name, data }, ctx) => {
        const bytes = typeof data === "string" ? bytesOf(data) : data;
        // The types forbid what JavaScript lets one write.
        const stored = ctx.session.blobs.put(name as string, bytes as Uint8Array);
        if (bytes instanceof Uint8Array) bytes.fill(0);
        return (await stored).bytes;
      },
    }),
    get: call({ input: z.string(), run: async (_s, name, ctx) => text(await ctx.session.blobs.get(name)) }),
    take: call({ input: z.string(), run: (_state, name, ctx) => ctx.session.blobs.delete(name) }),
    names: call({
      run: async (_state, _input: undefined, ctx) =>
        (await ctx.session.blobs.list()).map(({ name }) => name).sort(),
    }),
    many: call({
      input: z.int(),
      run: async (_state, count, ctx) => {
        for (let i = 0; i < count; i++) await ctx.session.blobs.put(`n${i}`, new Uint8Array(1));
      },
    }),
  },
});

const app = collectApp({
  programs,
  keeps: defineOrchestration("keeps", {
    input: z.int(),
    async run(ctx, round): Promise<unknown> {
      const session = await ctx.openSession(programs, { id: "s", onLost: "reclaim" });
      if (round === 1) {
        await session.put({ name: "a", data: "first" });
        await session.put({ name: "a", data: "second" });
        await session.put({ name: "b.bin", data: "gone soon" });
        await session.put({ name: "empty", data: "" });
        const taken = [await session.take("b.bin"), await session.take("b.bin")];
        ctx.setStatus(taken);
        await ctx.waitForSignal("go");
        return ctx.continueAsNew(2);
      }
      const found = [await session.get("a"), await session.get("b.bin"), await session.get("made")];
      const names = await session.names(undefined);
      await ctx.waitForSignal("end");
      await session.close();
      return { found, names };
    },
  }),
});

async function open(): Promise<Member[]> {
  world = new World({ seed: 1, app, faults: calm });
  await world.prepare();
  const workers = [await world.worker(), await world.worker()];
  await world.orchestrator();
  await world.watcher();
  return workers;
}
const run = <T>(work: Promise<T>) => world.run(work);
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (await holds()) return;
    await world.clock.advance(100);
  }
  throw new Error("it never held");
}
const describe = (id: string) => run(world.client.sessions.describe(id));
const stored = async () =>
  (await run(world.outside.blobs.list("session-blobs/"))).map(({ key }) => key.replace(/\d+-/, ""));

test("what is stored under a name is there after a death and a new execution, for code and people, and goes with the session", async () => {
  const workers = await open();
  const handle = await world.start("keeps", 1, "i");
  await until(async () => (await run(world.client.sessions.list())).length === 1);
  await until(async () => (await describe("s")).figures.blobs === 3);
  // What was replaced or deleted is in the store no more.
  await until(async () => (await stored()).length === 3);
  const access = world.client.session("s");
  expect((await run(access.blobs.list())).map(({ name, bytes }) => [name, bytes])).toEqual([
    ["made", 2],
    ["a", 6],
    ["empty", 0],
  ]);
  expect(text(await run(access.blobs.get("a")))).toBe("second");
  expect((await run(access.blobs.get("empty")))?.byteLength).toBe(0);
  expect(await run(access.blobs.get("b.bin"))).toBeUndefined();
  const { record, figures } = await describe("s");
  expect(figures.blobBytes).toBe(8);
  workers.find(({ id }) => id === record.workerId)?.kill();
  await run(handle.signal("go"));
  await run(handle.signal("end"));
  // The next holder's init found what the one before had stored in its own, and stored over it.
  expect(await run(handle.result())).toEqual({
    found: ["second", null, "1;2;"],
    names: ["a", "empty", "made"],
  });
  await until(async () => (await stored()).length === 0);
  expect((await describe("s")).figures.blobs).toBe(0);
  expect(await run(access.blobs.list())).toEqual([]);
  checkHistory((await world.history("i")) ?? []);
}, 60_000);

test("what is not allowed is refused by name, and nothing is stored", async () => {
  await open();
  const session = world.client.session(programs, { key: "k" });
  const code = (name: unknown, data: unknown) =>
    run(session.put({ name, data }).catch((error) => error.code));
  await run(session.open());
  for (const name of ["", "a/b", "ä", "x".repeat(129), 7, null, undefined])
    expect(await code(name, "data")).toBe("invalid_blob");
  for (const data of [undefined, null, 7, { length: 3 }]) expect(await code("n", data)).toBe("invalid_blob");
  expect(await run(session.names(undefined))).toEqual(["made"]);
  expect(await run(session.get("n"))).toBeUndefined();
  await run(session.many(63));
  expect(await code("one-more", "x")).toBe("invalid_blob");
  expect(await code("n0", "instead")).toBe(7);
  expect(await run(session.take("n1"))).toBe(true);
  expect(await code("one-more", "x")).toBe(1);
}, 60_000);

test("a holder that slept through its lease stores nothing for its successor to find", async () => {
  const workers = await open();
  const session = world.client.session(programs, { key: "k", onLost: "reclaim" });
  await run(session.put({ name: "a", data: "one" }));
  const { record } = await describe(session.id);
  const holder = workers.find(({ id }) => id === record.workerId);
  if (!holder) throw new Error("nobody holds it");
  const { blobs } = holder.bus;
  const put = blobs.put.bind(blobs);
  let asleep = false;
  let wake = (): void => undefined;
  // The bytes of its next put reach the store; before it can say so it falls asleep for longer than its lease.
  blobs.put = async (key, bytes) => {
    await put(key, bytes);
    holder.pause("let through");
    asleep = true;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  };
  const second = session.put({ name: "a", data: "two" });
  await world.clock.runUntil(() => asleep);
  expect((await stored()).length).toBe(3);
  // The next holder makes the call again.
  expect(await run(second)).toBe(3);
  const list = () => run(world.client.session(session.id).blobs.list());
  await until(async () => (await list()).at(-1)?.name === "a");
  const listed = await list();
  holder.resume();
  wake();
  await until(async () => (await stored()).length === 2);
  await world.clock.advance(sessionTtlMs);
  expect(await list()).toEqual(listed);
  expect(await run(session.get("a"))).toBe("two");
}, 60_000);

test("while an older process is alive nothing is written that it cannot read", async () => {
  const plain = defineSession("plain", {
    init: () => ({}),
    calls: {
      put: call({ run: (_state, name: string, ctx) => ctx.session.blobs.put(name, new Uint8Array(1)) }),
    },
  });
  const puts = defineOrchestration("puts", {
    async run(ctx) {
      await using session = await ctx.openSession(plain, { id: "s" });
      await session.put("a");
    },
  });
  world = new World({
    seed: 1,
    app: collectApp({ plain, puts }),
    faults: calm,
    generation: fixedGeneration(1),
  });
  await world.prepare();
  await world.worker();
  await world.orchestrator();
  const handle = await world.start("puts", undefined, "i");
  await expect(world.run(handle.result(), 60_000)).rejects.toMatchObject({ code: "needs_newer_fleet" });
  expect(await stored()).toEqual([]);
});
