/** Everything of `durable.ts`, and sessions. */
import { call, defineOrchestration, defineSession } from "holdfast";
import { note } from "./journal.ts";

export * from "./durable.ts";

const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

/** Counts in memory: what it returns tells whether the state is still the one that `init` made. */
export const counter = defineSession("counter", {
  leaseTtl: "2s",
  init: (ctx) => {
    note("init", ctx.session.id, ctx.session.workerId, ctx.session.epoch);
    return { n: 0 };
  },
  calls: {
    count: call({
      async run(state, ms: number, ctx) {
        note("count", ctx.session.id, ctx.session.workerId, ctx.session.epoch);
        if (ms > 0) await pause(ms, ctx.signal);
        state.n++;
        return state.n;
      },
    }),
  },
  shutdown: (_state, ctx) => note("shutdown", ctx.session.id, ctx.session.epoch),
});

export const counted = defineOrchestration("counted", {
  async run(ctx, { n, ms = 0 }: { n: number; ms?: number }) {
    await using session = await ctx.openSession(counter);
    let value = 0;
    for (let i = 0; i < n; i++) value = await session.count(ms);
    return value;
  },
});
