/** One orchestration for each thing an instance can do or suffer. */
import { defineActivity, defineOrchestration, HoldfastError, isCancelled, NonRetryableError } from "holdfast";
import { z } from "zod";
import { note } from "./journal.ts";

const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });

export const add = defineActivity("add", {
  run: async (ctx, { a, b }: { a: number; b: number }) => {
    note("add", ctx.instanceId);
    return a + b;
  },
});

export const checked = defineOrchestration("checked", {
  input: z.object({ order: z.object({ lines: z.array(z.object({ amount: z.int().positive() })) }) }),
  output: z.int(),
  run: async (_ctx, { order }) => order.lines.reduce((sum, line) => sum + line.amount, 0),
});

export const steps = defineOrchestration("steps", {
  async run(ctx, { n }: { n: number }) {
    let total = 0;
    for (let i = 0; i < n; i++) total = await ctx.run(add, { a: total, b: 1 });
    return total;
  },
});

/** Collects signals in order until it has enough. */
export const listener = defineOrchestration("listener", {
  async run(ctx, { n }: { n: number }) {
    const heard: unknown[] = [];
    for (let i = 0; i < n; i++) heard.push(await ctx.waitForSignal("word"));
    return heard;
  },
});

export const echo = defineActivity("echo", { run: async (_ctx, value: unknown) => value });

/** There and back through an activity. */
export const mirror = defineOrchestration("mirror", { run: (ctx, value: unknown) => ctx.run(echo, value) });

export const big = defineActivity("big", { run: async (_ctx, bytes: number) => "x".repeat(bytes) });
export const grown = defineOrchestration("grown", {
  run: async (ctx, bytes: number) => (await ctx.run(big, bytes)).length,
});

/** Values too large for a message, made by the orchestration itself. */
export const swollen = defineOrchestration("swollen", {
  async run(ctx, { bytes, levels }: { bytes: number; levels: number }) {
    const codes: string[] = [];
    const collect = (error: { code: string }) => void codes.push(error.code);
    if (bytes > 0) await ctx.run(echo, "x".repeat(bytes)).catch(collect);
    let nested: unknown = 0;
    for (let level = 0; level < levels; level++) nested = [nested];
    if (levels > 0) await ctx.run(echo, nested).catch(collect);
    ctx.setStatus(codes);
    return bytes > 0 ? "x".repeat(bytes) : nested;
  },
});

export const child = defineOrchestration("child", {
  async run(ctx, { word, fails = false }: { word: string; fails?: boolean }) {
    if (fails) throw new HoldfastError({ code: "child_says_no", message: "no" });
    if (word === "wait") return ctx.waitForSignal("go");
    return word.toUpperCase();
  },
});

export const family = defineOrchestration("family", {
  async run(ctx, { id }: { id: string }) {
    const spawned = ctx.spawn(child, { word: "wait" }, { id: `${id}-spawned` });
    const [a, b] = await Promise.all([
      ctx.child(child, { word: "a" }),
      ctx.child(child, { word: "b" }, { id: `${id}-named` }),
    ]);
    const failed = await ctx.child(child, { word: "c", fails: true }).catch((error) => error.code);
    return { a, b, failed, spawned };
  },
});

/** Starts a child under an id that another instance has. */
export const adopts = defineOrchestration("adopts", {
  run: (ctx, id: string) => ctx.child(child, { word: "mine" }, { id }).catch((error) => error.code),
});

export const parent = defineOrchestration("parent", {
  run: (ctx, id: string) => ctx.child(child, { word: "wait" }, { id }),
});

export const generations = defineOrchestration("generations", {
  async run(ctx, { left, total }: { left: number; total: number }) {
    const next = await ctx.run(add, { a: total, b: 1 });
    if (left > 1) return ctx.continueAsNew({ left: left - 1, total: next });
    return { total: next, execution: ctx.execution };
  },
});

export const long = defineActivity("long", {
  heartbeatTimeout: "30s",
  async run(ctx) {
    note("long began", ctx.instanceId);
    try {
      for (;;) {
        await pause(50, ctx.signal);
        ctx.heartbeat();
      }
    } finally {
      note("long ended", ctx.instanceId);
    }
  },
});

/** Cleans up when it is asked to end. */
export const tidy = defineOrchestration("tidy", {
  async run(ctx) {
    try {
      return await ctx.run(long, null);
    } catch (error) {
      if (isCancelled(error)) await ctx.uncancellable((inner) => inner.run(add, { a: 1, b: 1 }));
      throw error;
    }
  },
});

export const sleepy = defineOrchestration("sleepy", {
  async run(ctx, { ms, times }: { ms: number; times: number }) {
    const slept: number[] = [];
    for (let i = 0; i < times; i++) {
      const before = ctx.now();
      await ctx.sleep(ms);
      slept.push(ctx.now() - before);
    }
    return slept;
  },
});

export const flaky = defineActivity("flaky", {
  retry: { maxAttempts: 5, initialDelay: "50ms", factor: 1 },
  run: async (ctx, { failures }: { failures: number }) => {
    note("flaky", ctx.instanceId, ctx.attempt);
    if (ctx.attempt <= failures) throw new Error(`attempt ${ctx.attempt} fails`);
    return ctx.attempt;
  },
});
export const persistent = defineOrchestration("persistent", {
  run: (ctx, failures: number) => ctx.run(flaky, { failures }),
});

export const hopeless = defineActivity("hopeless", {
  run: async (ctx) => {
    note("hopeless", ctx.instanceId);
    throw new NonRetryableError("never", { code: "never_works" });
  },
});
export const gaveUp = defineOrchestration("gave-up", {
  run: (ctx) => ctx.run(hopeless, null).catch((error) => error.code),
});

/** Sends two heartbeats, then none; the next attempt gets the details of the last one. */
export const fadesAway = defineActivity("fades-away", {
  heartbeatTimeout: "1s",
  retry: { maxAttempts: 2, initialDelay: "10ms" },
  async run(ctx) {
    if (ctx.attempt > 1) return { attempt: ctx.attempt, before: ctx.lastHeartbeat };
    ctx.heartbeat({ done: 1 });
    ctx.heartbeat({ done: 2 });
    await pause(60_000, ctx.signal);
    return "too late";
  },
});
export const fading = defineOrchestration("fading", { run: (ctx) => ctx.run(fadesAway, null) });

const slow = defineActivity("slow", {
  retry: { maxAttempts: 1 },
  run: async (ctx, ms: number) => {
    await pause(ms, ctx.signal);
    return "done";
  },
});

export { slow };

/** Each of the timeouts by name. */
export const timedOut = defineOrchestration("timed-out", {
  async run(ctx) {
    const caught = (error: { code: string; details?: unknown }) => ({
      code: error.code,
      details: error.details,
    });
    return Promise.all([
      ctx.run(slow, 60_000, { startToClose: "300ms" }).catch(caught),
      ctx.run(slow, 60_000, { scheduleToClose: "300ms" }).catch(caught),
      ctx.run(slow, 1, { queue: "nobody", scheduleToStart: "300ms" }).catch(caught),
      ctx.run(slow, 60_000, { heartbeatTimeout: "300ms" }).catch(caught),
    ]);
  },
});

/** Much to show in one turn. */
export const chatty = defineOrchestration("chatty", {
  async run(ctx, { n }: { n: number }) {
    for (let i = 1; i <= n; i++) ctx.setStatus({ step: i });
    await ctx.waitForSignal("enough");
    for (let i = 1; i <= n; i++) ctx.setStatus({ again: i });
    return n;
  },
});
