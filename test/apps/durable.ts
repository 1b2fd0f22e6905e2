/** Orchestrations without sessions, to be run while things die around them. */
import { defineActivity, defineOrchestration } from "holdfast";
import { note, noted } from "./journal.ts";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export const add = defineActivity("add", {
  async run(ctx, { a, b, ms = 0 }: { a: number; b: number; ms?: number }) {
    note("add", ctx.instanceId);
    if (ms > 0) await pause(ms);
    return a + b;
  },
});

export const steps = defineOrchestration("steps", {
  async run(ctx, { n, ms = 0 }: { n: number; ms?: number }) {
    let total = 0;
    for (let i = 0; i < n; i++) total = await ctx.run(add, { a: total, b: 1, ms });
    return total;
  },
});

/** Beats and never ends by itself, except where an earlier attempt has left a beat behind. */
export const lives = defineActivity("lives", {
  async run(ctx) {
    note("lives", ctx.workerId, ctx.attempt);
    if (ctx.lastHeartbeat !== undefined) return { before: ctx.lastHeartbeat, workerId: ctx.workerId };
    for (let beat = 1; ; beat++) {
      ctx.heartbeat({ workerId: ctx.workerId });
      if (beat === 3) note("beating", ctx.workerId);
      await pause(50);
    }
  },
});

export const survivor = defineOrchestration("survivor", {
  run: (ctx, heartbeatTimeout: `${number}s` | null) =>
    ctx.run(lives, null, { heartbeatTimeout: heartbeatTimeout ?? "30s" }),
});

/** Ends only when it was begun more often than this number: the workers that ran it before must have died. */
export const hardy = defineActivity("hardy", {
  run(_ctx, { deaths }: { deaths: number }) {
    note("lives", process.pid);
    const runs = noted("lives");
    return runs > deaths ? runs : new Promise<never>(() => undefined);
  },
});

export const outlives = defineOrchestration("outlives", {
  run: (ctx, input: { deaths: number }) => ctx.run(hardy, input),
});

/** Timers, parallel work, a child and a signal in one, so that every kind of message is under way when something dies. */
export const mixed = defineOrchestration("mixed", {
  async run(ctx, { n }: { n: number }) {
    const [sum, child] = await Promise.all([
      Promise.all(Array.from({ length: n }, (_, i) => ctx.run(add, { a: i, b: 0, ms: 20 }))),
      ctx.child(steps, { n, ms: 10 }),
      ctx.sleep(300),
    ]);
    const word = await ctx.waitForSignal<string>("word");
    return { sum: sum.reduce((a, b) => a + b, 0), child, word };
  },
});

export const generations = defineOrchestration("generations", {
  async run(ctx, { left, total }: { left: number; total: number }) {
    const next = await ctx.run(add, { a: total, b: 1 });
    if (left > 1) return ctx.continueAsNew({ left: left - 1, total: next });
    return { total: next, execution: ctx.execution };
  },
});

export const sleepy = defineOrchestration("sleepy", {
  async run(ctx, { ms, times = 1 }: { ms: number; times?: number }) {
    const before = ctx.now();
    for (let i = 0; i < times; i++) await ctx.sleep(ms);
    return ctx.now() - before;
  },
});
