/** Orchestrations whose steps record when they ran. */
import { defineActivity, defineOrchestration } from "holdfast";
import { machineMs } from "../clock.ts";

/** Returns when it ran. */
export const stamp = defineActivity("stamp", {
  run: async (_ctx, _step: number) => machineMs(),
});

/** `{n}` → the stamps of n activities one after the other. */
export const stampedSteps = defineOrchestration("stamped-steps", {
  async run(ctx, { n }: { n: number }): Promise<number[]> {
    const stamps: number[] = [];
    for (let step = 0; step < n; step++) stamps.push(await ctx.run(stamp, step));
    return stamps;
  },
});

/** `{n}` → the stamps of n local activities one after the other. */
export const stampedLocals = defineOrchestration("stamped-locals", {
  async run(ctx, { n }: { n: number }): Promise<number[]> {
    const stamps: number[] = [];
    for (let step = 0; step < n; step++) stamps.push(await ctx.local(stamp, step));
    return stamps;
  },
});

/** What a schedule of the benchmark starts. */
export const stampedNow = defineOrchestration("stamped-now", { run: async (ctx) => ctx.now() });

/** Waits for `go`; returns when its code went on, and when the next activity ran. */
export const stampedSignal = defineOrchestration("stamped-signal", {
  async run(ctx, _input: unknown): Promise<{ code: number; activity: number }> {
    await ctx.waitForSignal("go");
    const code = ctx.sideEffect(machineMs);
    return { code, activity: await ctx.run(stamp, 0) };
  },
});

/** `{n, width}` → n activities, so many at a time, then waits for `go`: a long history that is not over. */
export const longHistory = defineOrchestration("long-history", {
  async run(ctx, { n, width }: { n: number; width: number }): Promise<void> {
    for (let done = 0; done < n; done += width) {
      await Promise.all(Array.from({ length: width }, (_, index) => ctx.run(stamp, done + index)));
    }
    ctx.setStatus("long");
    await ctx.waitForSignal("go");
  },
});
