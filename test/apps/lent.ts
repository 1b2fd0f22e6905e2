/**
 * A seat that one orchestration has for itself. It notes where it is made, which orchestration uses it from
 * when to when, and its end.
 */
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

export interface Sat {
  member: string;
  workerId: string;
  epoch: number;
  /** The previous users of this seat, as far as this state knows. */
  before: string[];
}

export const seat = defineSession("seat", {
  config: z.object({ name: z.string() }),
  idleTimeout: "1500ms",
  init: (ctx, { name }) => {
    note("init", name, ctx.session.id, ctx.session.workerId, ctx.session.epoch);
    return { name, sat: [] as string[] };
  },
  calls: {
    sit: call({
      async run(state, { by, ms }: { by: string; ms: number }, ctx) {
        const { id: member, workerId, epoch } = ctx.session;
        note("sit", state.name, by, member, workerId, epoch);
        const before = state.sat.filter((one: string) => one !== by);
        await pause(ms, ctx.signal);
        if (state.sat.at(-1) !== by) state.sat.push(by);
        return { member, workerId, epoch, before };
      },
    }),
    /** Does not care whether anybody waits. */
    sulk: call({
      run: (state, by: string) => {
        note("sulk", state.name, by);
        return new Promise(() => undefined);
      },
    }),
  },
  shutdown: (state, ctx) => note("shutdown", state.name, ctx.session.id),
});

type Options = Omit<PoolOptions, "config" | "sharing"> & { name: string };

const poolOf = ({ name, ...options }: Options) => ({
  linger: "1s" as const,
  ...options,
  sharing: "exclusive" as const,
  config: { name },
});

/** Uses the seat that many times. With `stay` it keeps it until a signal. */
export const sitting = defineOrchestration("sitting", {
  async run(
    ctx,
    {
      pool: options,
      times = 1,
      ms = 0,
      stay = false,
    }: { pool: Options; times?: number; ms?: number; stay?: boolean },
  ) {
    await using mine = await ctx.usePool(seat, poolOf(options));
    const sat: Sat[] = [];
    for (let i = 0; i < times; i++) sat.push((await mine.sit({ by: ctx.instanceId, ms })) as Sat);
    if (stay) await ctx.waitForSignal("go");
    if (stay) sat.push((await mine.sit({ by: ctx.instanceId, ms: 0 })) as Sat);
    return sat;
  },
});

export const sulking = defineOrchestration("sulking", {
  async run(ctx, options: Options) {
    await using mine = await ctx.usePool(seat, poolOf(options));
    return await mine.sulk(ctx.instanceId);
  },
});

/** Gives its seat back with each execution, and has to wait for the next one like anybody. */
export const generations = defineOrchestration("generations", {
  async run(ctx, { pool: options, left }: { pool: Options; left: number }) {
    const mine = await ctx.usePool(seat, poolOf(options));
    const { before } = (await mine.sit({ by: `${ctx.instanceId}-${ctx.execution}`, ms: 20 })) as Sat;
    if (left === 0) return before;
    return ctx.continueAsNew({ pool: options, left: left - 1 });
  },
});
