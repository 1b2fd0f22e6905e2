/** What orchestrators run. */
import { defineOrchestration, isSessionLost } from "holdfast";
import { z } from "zod";
import { room, step, tally } from "./work.ts";

/** So many steps, one after the other; returns how many. */
export const walk = defineOrchestration("walk", {
  input: z.object({ steps: z.int().nonnegative() }),
  output: z.int(),
  async run(ctx, { steps }) {
    let count = 0;
    while (count < steps) count = await ctx.run(step, count);
    return count;
  },
});

/** Opens a session, reports its worker and the time, and stays until a signal. */
export const visit = defineOrchestration("visit", {
  async run(ctx) {
    const session = await ctx.openSession(room);
    ctx.setStatus({ host: session.info.host, openedAt: ctx.now() });
    await ctx.waitForSignal("leave");
    await session.close();
  },
});

/**
 * Holds a session and adds to its tally at every signal `add` (`{ms}`: how long that takes), until it gets
 * `{done}`. A loss is caught, and it goes on in a new session. What happened is its status and in the end its
 * result.
 */
export const hold = defineOrchestration("hold", {
  input: z.object({ onLost: z.enum(["fail", "reclaim"]), leaseTtl: z.int() }),
  async run(ctx, options) {
    const seen: unknown[] = [];
    let session = await ctx.openSession(tally, options);
    const openedAt = ctx.now();
    for (;;) {
      ctx.setStatus({ host: session.info.host, openedAt, seen });
      const { ms = 0, done = false } = await ctx.waitForSignal<{ ms?: number; done?: boolean }>("add");
      if (done) break;
      try {
        seen.push({ ...(await session.add({ ms })), at: ctx.now() });
      } catch (error) {
        if (!isSessionLost(error)) throw error;
        seen.push({ lost: error.code, reason: error.reason, at: ctx.now() });
        session = await ctx.openSession(tally, options);
        seen.push({ ...(await session.add({})), at: ctx.now() });
      }
    }
    await session.close();
    return seen;
  },
});
