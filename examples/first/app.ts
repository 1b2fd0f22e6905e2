import { call, defineActivity, defineOrchestration, defineSession } from "holdfast";
import { z } from "zod";

export const lengthOf = defineActivity("length-of", {
  run: async (_ctx, word: string) => word.length, // ordinary code: fetch, read, write; retried when it fails
});
export const tally = defineSession("tally", {
  init: async () => ({ total: 0 }), // the expensive part: built once, kept by one worker
  calls: { add: call({ run: (state: { total: number }, n: number) => (state.total += n) }) },
});
export const measure = defineOrchestration("measure", {
  input: z.object({ words: z.array(z.string()) }), // checked before anything runs
  async run(ctx, { words }) {
    await using session = await ctx.openSession(tally, { onLost: "reclaim" });
    const lengths = await Promise.all(words.map((word) => ctx.run(lengthOf, word))); // in parallel
    for (const length of lengths) await session.add(length); // warm, always on that worker
    return await session.add(0);
  },
});
