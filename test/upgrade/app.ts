/** What runs while an installation is upgraded and rolled back. Results depend on the input alone, so each can be checked. */
import { call, defineActivity, defineOrchestration, defineSession } from "holdfast";

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export const add = defineActivity("add", {
  retry: { maxAttempts: 20, initialDelay: "100ms", maxDelay: "1s" },
  async run(_ctx, { a, b }: { a: number; b: number }) {
    await pause(20);
    return a + b;
  },
});

/** The state may be new after a loss: the caller says where it is. */
export const counter = defineSession("counter", {
  init: async () => {
    await pause(30);
    return { n: 0 };
  },
  calls: {
    count: call({
      async run(state: { n: number }, from: number) {
        await pause(10);
        state.n = from + 1;
        return state.n;
      },
    }),
  },
});

const patient = {
  onLost: "reclaim" as const,
  leaseTtl: "3s" as const,
  creationTimeout: "5m" as const,
  maxInitAttempts: 50,
  recovery: { maxAutoRetries: 50 },
};

export const sequence = defineOrchestration("sequence", {
  async run(ctx, n: number) {
    let total = 0;
    for (let i = 0; i < n; i++) total = await ctx.run(add, { a: total, b: 1 });
    return total;
  },
});

/** A session held for as long as it takes, with timers between the calls: it outlives the processes it began with. */
export const long = defineOrchestration("long", {
  async run(ctx, n: number) {
    await using session = await ctx.openSession(counter, patient);
    let value = 0;
    for (let i = 0; i < n; i++) {
      value = await session.count(value);
      await ctx.sleep(500);
      value = await ctx.run(add, { a: value, b: 0 });
    }
    return value;
  },
});

export const family = defineOrchestration("family", {
  async run(ctx, n: number) {
    const parts = await Promise.all([ctx.child(sequence, n), ctx.child(sequence, n)]);
    return parts.reduce((sum, part) => sum + part, 0);
  },
});

export const pooled = defineOrchestration("pooled", {
  async run(ctx, n: number) {
    await using pool = await ctx.usePool(counter, { min: 1, max: 3, linger: "5s" });
    let value = 0;
    for (let i = 0; i < n; i++) value = await pool.count(value);
    return value;
  },
});

export const signalled = defineOrchestration("signalled", {
  async run(ctx, n: number) {
    const heard: number[] = [];
    for (let i = 0; i < n; i++) heard.push(await ctx.waitForSignal<number>("tick"));
    return heard.length;
  },
});

export const renewed = defineOrchestration("renewed", {
  async run(ctx, input: number | { left: number; total: number }) {
    const { left, total } = typeof input === "number" ? { left: input, total: 0 } : input;
    const next = await ctx.run(add, { a: total, b: 1 });
    await ctx.sleep(200);
    if (left <= 1) return next;
    return ctx.continueAsNew({ left: left - 1, total: next });
  },
});
