import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../shared/definitions/index.ts";

const Label = z.object({ label: z.string(), score: z.number() });

const classifier = defineSession("ml-classifier", {
  config: z.object({ model: z.string() }),
  requires: { tags: ["gpu"], resources: { vram: 2 } },
  idleTimeout: "5m",
  isolation: "thread",
  init: async (_ctx, config) => ({
    run: (texts: string[]) => texts.map((t) => ({ label: config.model + t, score: 1 })),
    hits: 0,
  }),
  calls: {
    classify: call({
      input: z.string(),
      output: Label,
      batch: { maxSize: 32, maxDelay: "4ms" },
      run: async (state, texts) => {
        expectTypeOf(texts).toEqualTypeOf<string[]>();
        return state.run(texts);
      },
    }),
    count: call({ run: async (state) => state.hits }),
  },
  snapshot: (state) => ({ hits: state.hits }),
});

const shout = defineActivity("shout", {
  input: z.string(),
  output: z.string(),
  run: async (_ctx, text) => text.toUpperCase(),
});
const plain = defineActivity("plain", { run: async (_ctx, n: number) => n + 1 });

const orchestration = defineOrchestration("classify-docs", {
  input: z.object({ docs: z.array(z.string()) }),
  output: z.array(Label),
  async run(ctx, { docs }) {
    await using session = await ctx.openSession(classifier, { config: { model: "m" }, onLost: "reclaim" });
    const labels = [];
    for (const doc of docs) labels.push(await session.classify(doc));
    expectTypeOf(await ctx.run(shout, "x")).toEqualTypeOf<string>();
    expectTypeOf(await session.run(plain, 1)).toEqualTypeOf<number>();
    return labels;
  },
});

/** Only the inputs of calls without a schema are annotated: they cannot be inferred. */
const inferred = defineSession("inferred", {
  calls: {
    add: call({ run: (state, by: number) => (state.n += by) }),
    find: call({ input: z.string(), run: async (state, key) => state.seen.has(key) }),
    all: call({
      batch: { maxSize: 2, maxDelay: 1 },
      run: (state, keys: string[]) => keys.map((key) => state.seen.has(key)),
    }),
  },
  init(ctx) {
    ctx.log.info("made");
    return { n: ctx.threads, seen: new Set<string>() };
  },
  checkpoint: (state) => Uint8Array.of(state.n),
  restore: (ctx, _config, bytes) => ({ n: bytes[0] ?? ctx.threads, seen: new Set<string>() }),
  shutdown: (state) => state.seen.clear(),
});

test("defect 41: init(ctx) without annotations infers", () => {
  expectTypeOf<Parameters<NonNullable<typeof inferred.checkpoint>>[0]>().toEqualTypeOf<{
    n: number;
    seen: Set<string>;
  }>();
  const opens = defineOrchestration("opens", {
    async run(ctx) {
      const session = await ctx.openSession(inferred);
      await session.add(1);
      await session.find("x");
    },
  });
  expect(opens.name).toBe("opens");
});

interface Counted {
  n: number;
  seen: Set<string>;
}

test("defect 41: the state of calls is what init returns, without annotations", async () => {
  const counted = defineSession("counted", {
    init(ctx): Counted {
      return { n: ctx.threads, seen: new Set<string>() };
    },
    calls: (call) => ({
      add: call({
        run: (state, by: number) => {
          expectTypeOf(state).toEqualTypeOf<Counted>();
          return state.n + by;
        },
      }),
      find: call({
        input: z.string(),
        async run(state, key) {
          expectTypeOf(state).toEqualTypeOf<Counted>();
          return state.seen.has(key);
        },
      }),
      all: call({
        batch: { maxSize: 2, maxDelay: 1 },
        run: (state, keys: string[]) => {
          expectTypeOf(state).toEqualTypeOf<Counted>();
          return keys.map((key) => state.seen.has(key));
        },
      }),
    }),
  });
  const configured = defineSession("configured", {
    config: z.object({ from: z.number() }),
    init: async (_ctx, { from }) => ({ n: from }),
    calls: (call) => ({
      get: call({
        run: (state) => {
          expectTypeOf(state).toEqualTypeOf<{ n: number }>();
          return state.n;
        },
      }),
    }),
  });
  expect(Object.keys(counted.calls)).toEqual(["add", "find", "all"]);
  expect(Object.keys(configured.calls)).toEqual(["get"]);
  defineOrchestration("uses", {
    async run(ctx) {
      const session = await ctx.openSession(counted);
      expectTypeOf(await session.add(1)).toEqualTypeOf<number>();
      // @ts-expect-error the input of a call is checked as ever
      await session.find(1);
    },
  });
});

test("definitions carry their types and are found in a module", () => {
  const app = collectApp({ classifier, nested: { shout, plain }, orchestration });
  expect([...app.sessions.keys()]).toEqual(["ml-classifier"]);
  expect([...app.activities.keys()]).toEqual(["shout", "plain"]);
  expect([...app.orchestrations.keys()]).toEqual(["classify-docs"]);
});

test("two definitions of one name are refused by name", () => {
  expect(() => collectApp({ a: shout, b: defineActivity("shout", { run: () => 1 }) })).toThrow(
    /two activities named "shout"/,
  );
});
