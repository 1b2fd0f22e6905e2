// The application: loaded by the orchestrator (orchestrations) and by the workers (activities, sessions).
import { call, defineActivity, defineOrchestration, defineSession } from "holdfast";
import { countMarks, emit, mark, now, sleep, takeMarks } from "../lib/worker.mjs";

process.on("message", (m) => {
  if (!m?.call) return;
  const ops = {
    marks: takeMarks,
    count: countMarks,
    ping: () => "pong",
    memory: () => process.memoryUsage(),
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
export const counter = defineSession("counter", {
  init: async () => ({ n: 0, sum: 0 }),
  calls: {
    add: call({
      run: (state, { k }) => {
        state.n++;
        state.sum += k;
        return { n: state.n, sum: state.sum, pid: process.pid };
      },
    }),
  },
});
export const slowCounter = defineSession("slow-counter", {
  init: async () => ({ n: 0 }),
  calls: {
    step: call({
      run: async (state, { key, i, ms }) => {
        emit("step", { key, i });
        await sleep(ms);
        state.n++;
        return { i };
      },
    }),
  },
});

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
/** The same, so many at a time. */
export const fanWidth = defineOrchestration("fan-width", {
  async run(ctx, { n, key, width }) {
    let next = 0;
    const lane = async () => {
      while (next < n) await ctx.run(step, { i: next++, key });
    };
    await Promise.all(Array.from({ length: width }, lane));
    return n;
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
export const sessionFlow = defineOrchestration("session-flow", {
  async run(ctx, { id, calls, key, wait }) {
    const session = await ctx.openSession(counter, { creationTimeout: "2m" });
    if (wait) {
      emit("open", { key, i: id });
      await ctx.waitForSignal("go");
    }
    const lat = [];
    let v;
    for (let k = 0; k < calls; k++) {
      const t = now();
      v = await session.add({ k });
      lat.push(now() - t);
    }
    await session.close();
    emit("lat", { key, i: id, lat });
    return v;
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
export const slowSession = defineOrchestration("slow-session", {
  async run(ctx, { n, key, ms }) {
    const session = await ctx.openSession(slowCounter, {
      leaseTtl: "1s",
      onLost: "reclaim",
      creationTimeout: "1m",
    });
    for (let i = 0; i < n; i++) await session.step({ key, i, ms });
    await session.close();
    return n;
  },
});
