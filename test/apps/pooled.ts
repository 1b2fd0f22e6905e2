/** A model that many share. It notes where it is loaded, what it was asked, and when it goes. */
import { call, defineOrchestration, defineSession, type PoolOptions } from "holdfast";
import { z } from "zod";
import { note } from "./journal.ts";

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

export const model = defineSession("model", {
  config: z.object({ name: z.string(), broken: z.boolean().optional() }),
  idleTimeout: "1500ms",
  init: (ctx, { name, broken }) => {
    note("init", name, ctx.session.id, ctx.session.workerId);
    if (broken) throw new Error("there is no such model");
    return { name, asked: 0 };
  },
  calls: {
    ask: call({
      async run(state, { tag, ms }: { tag: string; ms: number }, ctx) {
        note("ask", state.name, tag, ctx.session.id, ctx.session.workerId);
        await pause(ms, ctx.signal);
        state.asked++;
        return { asked: state.asked, member: ctx.session.id, workerId: ctx.session.workerId };
      },
    }),
    many: call({
      batch: { maxSize: 6, maxDelay: "3s" },
      run: (state, inputs: string[]) => {
        note("batch", state.name, inputs.length);
        return inputs.map((input) => input.toUpperCase());
      },
    }),
  },
  shutdown: (state, ctx) => note("shutdown", state.name, ctx.session.id),
});

type Options = Omit<PoolOptions, "config"> & { name: string; broken?: boolean };

const poolOf = ({ name, broken, ...options }: Options) => ({
  linger: "1s" as const,
  ...options,
  config: { name, ...(broken ? { broken } : {}) },
});

export interface Answer {
  asked: number;
  member: string;
  workerId: string;
}

/** Asks so many times at once. With `stay` it uses the pool until a signal. */
export const asking = defineOrchestration("asking", {
  async run(
    ctx,
    {
      pool: options,
      calls,
      ms = 0,
      stay = false,
    }: { pool: Options; calls: number; ms?: number; stay?: boolean },
  ) {
    await using pool = await ctx.usePool(model, poolOf(options));
    if (stay) await ctx.waitForSignal("ask");
    const asked = Array.from({ length: calls }, (_, i) => pool.ask({ tag: `${ctx.instanceId}-${i}`, ms }));
    const answers = (await Promise.all(asked)) as Answer[];
    if (stay) await ctx.waitForSignal("go");
    return answers;
  },
});

export const shouting = defineOrchestration("shouting", {
  async run(ctx, options: Options) {
    await using pool = await ctx.usePool(model, poolOf(options));
    return await pool.many(ctx.instanceId);
  },
});

/** A pool is left and joined again with each execution. */
export const generations = defineOrchestration("generations", {
  async run(ctx, { pool: options, left }: { pool: Options; left: number }) {
    const pool = await ctx.usePool(model, poolOf(options));
    const { asked } = (await pool.ask({ tag: `${left}`, ms: 0 })) as Answer;
    if (left === 0) return { asked, execution: ctx.execution };
    return ctx.continueAsNew({ pool: options, left: left - 1 });
  },
});
