// The application: loaded by the orchestrator (orchestrations) and by the workers (activities).
import { defineActivity, defineOrchestration } from "holdfast";
import { emit, mark, sleep, takeMarks } from "../lib/worker.mjs";

process.on("message", (m) => {
  if (!m?.call) return;
  const ops = {
    marks: takeMarks,
  };
  try {
    process.send({ reply: m.call, value: ops[m.op](...m.args) });
  } catch (e) {
    process.send({ reply: m.call, error: String(e?.stack ?? e) });
  }
});
process.channel?.unref();

export const step = defineActivity("step", {
  run: async (_ctx, { i, key }) => {
    if (key) mark(key);
    return { i };
  },
});
export const publish = defineActivity("publish", {
  run: async (_ctx, { key, r }) => {
    emit("waiting", { key, i: r });
  },
});
export const slowSteps = Array.from({ length: 10 }, (_, k) =>
  defineActivity(`slow-step-${k}`, {
    run: async (_ctx, { key, i, ms }) => {
      emit("step", { key, i });
      await sleep(ms);
      return { i };
    },
  }),
);

export const seq = defineOrchestration("seq", {
  async run(ctx, { n, key }) {
    let last;
    for (let i = 0; i < n; i++) last = await ctx.run(step, { i, key });
    return last;
  },
});
export const fan = defineOrchestration("fan", {
  async run(ctx, { n, key }) {
    return (await Promise.all(Array.from({ length: n }, (_, i) => ctx.run(step, { i, key })))).length;
  },
});
export const short = defineOrchestration("short", {
  async run(ctx, { i }) {
    const a = await ctx.run(step, { i });
    const b = await ctx.run(step, a);
    return ctx.run(step, b);
  },
});
export const seqLocal = defineOrchestration("seq-local", {
  async run(ctx, { n, key }) {
    let last;
    for (let i = 0; i < n; i++) last = await ctx.local(step, { i, key });
    return last;
  },
});
export const shortLocal = defineOrchestration("short-local", {
  async run(ctx, { i }) {
    const a = await ctx.local(step, { i });
    const b = await ctx.local(step, a);
    return ctx.local(step, b);
  },
});
export const awaiter = defineOrchestration("awaiter", {
  async run(ctx, { key, rounds }) {
    for (let r = 0; r < rounds; r++) {
      await ctx.run(publish, { key, r });
      await ctx.waitForSignal(`r${r}`);
      emit("woke", { key, i: r });
    }
    return rounds;
  },
});
export const slow = defineOrchestration("slow", {
  async run(ctx, { n, key, ms, of }) {
    for (let i = 0; i < n; i++) await ctx.run(slowSteps[of], { key, i, ms });
    return n;
  },
});
