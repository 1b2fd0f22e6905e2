/** A bare session whose state the application keeps itself, and has to make anew. Part of `held.ts`. */
import { setTimeout as pause } from "node:timers/promises";
import { defineActivity, defineOrchestration, SessionLostError } from "holdfast";
import { note } from "./journal.ts";

const memories = new Map<string, string>();

export const learn = defineActivity("learn", {
  async run(ctx, what: string) {
    note("learn", ctx.session?.id ?? "nowhere", ctx.session?.epoch ?? 0);
    memories.set(ctx.session?.id ?? "", what);
    return what;
  },
});

export const forget = defineActivity("forget", {
  run: async (ctx) => memories.delete(ctx.session?.id ?? ""),
});

export const recall = defineActivity("recall", {
  async run(ctx, ms: number) {
    note("recall", ctx.session?.id ?? "nowhere", ctx.session?.epoch ?? 0);
    if (ms > 0) await pause(ms, undefined, { signal: ctx.signal });
    const known = memories.get(ctx.session?.id ?? "");
    if (known === undefined) throw new SessionLostError("nothing is known here");
    return known;
  },
});

/** Cannot give the state back: it does not find any itself. */
export const amnesia = defineActivity("amnesia", {
  async run(ctx) {
    note("amnesia", ctx.session?.id ?? "nowhere");
    throw new SessionLostError("nothing to rebuild from");
  },
});

/** A bare session whose state the application keeps by itself. */
export const remembering = defineOrchestration("remembering", {
  async run(ctx, { ms, cold = false }: { ms: number; cold?: boolean }) {
    await using session = await ctx.openSession({
      leaseTtl: "2s",
      onLost: "rebuild",
      recovery: { rebuild: { activity: learn, input: "the same again" } },
    });
    await session.run(learn, "at first");
    if (cold) await session.run(forget, null);
    const answers = await Promise.all(Array.from({ length: 5 }, () => session.run(recall, ms)));
    return { answers, epoch: session.info.epoch };
  },
});
