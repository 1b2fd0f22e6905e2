/** The smallest things an orchestration can do. Run it: npx holdfast dev --app examples/basics/app.ts */
import { defineActivity, defineOrchestration } from "holdfast";
import { z } from "zod";

export const greet = defineActivity("greet", {
  input: z.string(),
  output: z.string(),
  run: async (_ctx, name) => `Hello, ${name}!`,
});

export const step = defineActivity("step", {
  input: z.object({ index: z.int(), ms: z.number() }),
  output: z.int(),
  run: async (ctx, { index, ms }) => {
    if (ms > 0) await pause(ms, ctx.signal);
    return index;
  },
});

/** `{name}` → `"Hello, <name>!"` */
export const hello = defineOrchestration("hello", {
  input: z.object({ name: z.string() }),
  output: z.string(),
  run: (ctx, { name }) => ctx.run(greet, name),
});

/** `{n}` → n activities one after the other; returns n. */
export const steps = defineOrchestration("steps", {
  input: z.object({ n: z.int().nonnegative(), ms: z.number().default(0) }),
  output: z.int(),
  async run(ctx, { n, ms }) {
    for (let index = 0; index < n; index++) await ctx.run(step, { index, ms });
    return n;
  },
});

/** `{name}` → the same without a worker: a step so short that going to one would cost more than the step. */
export const helloLocally = defineOrchestration("hello-locally", {
  input: z.object({ name: z.string() }),
  output: z.string(),
  run: (ctx, { name }) => ctx.local(greet, name),
});

/** `{n}` → n activities at once; returns the sum of their indices. */
export const fanOut = defineOrchestration("fan-out", {
  input: z.object({ n: z.int().nonnegative(), ms: z.number().default(0) }),
  output: z.int(),
  async run(ctx, { n, ms }) {
    const indices = await Promise.all(Array.from({ length: n }, (_, index) => ctx.run(step, { index, ms })));
    return indices.reduce((sum, index) => sum + index, 0);
  },
});

/** Waits for the signal `go` and returns its payload. */
export const waitForSignal = defineOrchestration("wait-for-signal", {
  run: (ctx) => ctx.waitForSignal("go"),
});

/** `{ms}` → sleeps durably; returns how long it was. */
export const sleepy = defineOrchestration("sleepy", {
  input: z.object({ ms: z.int().nonnegative() }),
  output: z.number(),
  async run(ctx, { ms }) {
    const before = ctx.now();
    await ctx.sleep(ms);
    return ctx.now() - before;
  },
});

/** Ends early when its result is no longer needed. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
