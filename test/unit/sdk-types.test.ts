/** What users' code may and may not say, seen by the compiler: a line under `@ts-expect-error` must not compile. */
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  defineSignal,
  type OrchestrationContext,
  type SessionInfo,
} from "../../shared/definitions/index.ts";
import type { Client, InstanceHandle } from "../../shared/sdk/index.ts";

const none = defineActivity("none", { run: async () => 1 });
const text = defineActivity("text", { input: z.string(), run: async (_ctx, value) => value.length });
const maybe = defineActivity("maybe", { run: async (_ctx, n?: number) => n ?? 0 });
const kid = defineOrchestration("kid", { run: async (_ctx, { n }: { n: number }) => n });
const lonely = defineOrchestration("lonely", { run: async () => "done" });
const approved = defineSignal("approved", { payload: z.object({ by: z.string(), at: z.coerce.number() }) });
const bare = defineSignal("bare");

const schemaAndBare = defineSession("schema-and-bare", {
  config: z.object({ seed: z.number() }),
  init: async (_ctx, { seed }) => ({ n: seed }),
  calls: {
    add: call({ input: z.number(), run: (state, by) => state.n + by }),
    read: call({ run: async (state) => state.n }),
  },
  checkpoint: (state) => new Uint8Array([state.n]),
  restore: (_ctx, { seed }, bytes) => ({ n: seed + (bytes[0] ?? 0) }),
  snapshot: (state) => state.n,
  shutdown: (state) => void state.n,
});
const schemaAndNamed = defineSession("schema-and-named", {
  config: z.object({ seed: z.number() }),
  init: (_ctx, config) => ({ s: String(config.seed) }),
  calls: { read: call({ run: async (state) => state.s }) },
});
const annotated = defineSession("annotated", {
  init: async (_ctx, { seed }: { seed: number }) => ({ seed }),
  calls: { read: call({ run: async (state) => state.seed }) },
});
const withoutConfig = defineSession("without-config", {
  init: () => ({ on: true }),
  calls: { read: call({ run: async (state) => state.on }) },
});

async function code(ctx: OrchestrationContext, client: Client, handle: InstanceHandle): Promise<void> {
  expectTypeOf(await ctx.run(none)).toEqualTypeOf<number>();
  expectTypeOf(await ctx.run(maybe)).toEqualTypeOf<number>();
  expectTypeOf(await ctx.run(text, "a", { queue: "q" })).toEqualTypeOf<number>();
  expectTypeOf(await ctx.run("by-name")).toEqualTypeOf<unknown>();
  // @ts-expect-error an input that is asked for
  await ctx.run(text);
  await ctx.run(
    text,
    // @ts-expect-error reported at the input
    7,
  );
  expectTypeOf(await ctx.child(lonely)).toEqualTypeOf<string>();
  expectTypeOf(await ctx.child(kid, { n: 1 })).toEqualTypeOf<number>();
  await ctx.child(
    kid,
    // @ts-expect-error reported at the input
    { n: "1" },
  );
  // @ts-expect-error an input that is asked for
  ctx.spawn(kid);

  const session = await ctx.openSession(schemaAndBare, { config: { seed: 1 } });
  await session.add(1);
  await session.read();
  expectTypeOf(await session.run(none)).toEqualTypeOf<number>();
  // @ts-expect-error an input that is asked for
  await session.add();
  // @ts-expect-error a config that is asked for
  await ctx.openSession(schemaAndBare);
  // @ts-expect-error a config that is asked for
  await ctx.openSession(schemaAndBare, { lazy: true });
  // @ts-expect-error a config of another type
  await ctx.openSession(schemaAndBare, { config: { seed: "1" } });
  // @ts-expect-error a config that is asked for
  await ctx.usePool(schemaAndBare);
  await (await ctx.openSession(schemaAndNamed, { config: { seed: 1 } })).read();
  await (await ctx.openSession(annotated, { config: { seed: 1 } })).read();
  await (await ctx.openSession(withoutConfig)).read();
  expectTypeOf<SessionInfo["state"]>().not.toEqualTypeOf<string>();

  expectTypeOf(await ctx.waitForSignal(approved)).toEqualTypeOf<{ by: string; at: number }>();
  expectTypeOf(await ctx.waitForSignal("plain")).toEqualTypeOf<unknown>();
  expectTypeOf(await ctx.waitForSignal<number>("plain")).toEqualTypeOf<number>();
  await handle.signal(approved, { by: "ann", at: "7" });
  await handle.signal("plain");
  await handle.signal("plain", { any: "thing" });
  await client.signal("id", bare);
  // @ts-expect-error a payload that is asked for
  await client.signal("id", approved);
  // @ts-expect-error a payload of another type
  await client.signal("id", approved, { by: 7 });
  await client.start(lonely);
  // @ts-expect-error an input that is asked for
  await client.start(kid);
}

const typed = defineOrchestration("typed", {
  input: z.object({ round: z.number() }),
  async run(ctx, { round }): Promise<number> {
    if (round < 3) ctx.continueAsNew({ round: round + 1 });
    // @ts-expect-error the next execution takes what this one takes
    if (round < 0) ctx.continueAsNew({ wrong: 1 });
    return round;
  },
});

test("types are as users expect", () => {
  expect([code, typed]).toHaveLength(2);
});

test.each([
  [
    "defineSession",
    () => defineSession("s", { init: () => 1, calls: {}, idelTimeout: 1 } as never),
    "idleTimeout",
  ],
  ["defineActivity", () => defineActivity("a", { run: () => 1, queu: "q" } as never), "queue"],
  [
    "defineActivity, retry",
    () => defineActivity("a", { run: () => 1, retry: { maxAttempt: 2 } } as never),
    "maxAttempts",
  ],
  [
    "defineOrchestration",
    () => defineOrchestration("o", { inputs: z.string(), run: async () => 1 } as never),
    "input",
  ],
  ["call", () => call({ run: () => 1, timout: "1s" } as never), "timeout"],
  ["defineSignal", () => defineSignal("s", { paylod: z.string() } as never), "payload"],
])("%s refuses a misspelt option by name, with the nearest right one", (_what, define, nearest) => {
  expect(define).toThrow(new RegExp(`has no option ".*"; did you mean "${nearest}"\\?`));
});
