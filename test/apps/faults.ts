/** An application to be hurt. */
import { defineActivity, defineOrchestration } from "holdfast";

export const add = defineActivity("add", { run: async (_ctx, { a, b }: { a: number; b: number }) => a + b });

export const steps = defineOrchestration("steps", {
  async run(ctx, { n }: { n: number }) {
    let total = 0;
    for (let i = 0; i < n; i++) total = await ctx.run(add, { a: total, b: 1 });
    return total;
  },
});

export const endless = defineOrchestration("endless", {
  async run(ctx) {
    await ctx.run(add, { a: 1, b: 1 });
    for (;;) await Promise.resolve();
  },
});

const loop = defineActivity("loop", {
  run: () => {
    for (;;);
  },
});
export const endlessLocally = defineOrchestration("endless-locally", { run: (ctx) => ctx.local(loop, null) });
export { loop };

/** Returns, after it has blocked the thread for the given time. */
export const slow = defineOrchestration("slow", {
  async run(_ctx, ms: number) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    return "back";
  },
});
