/** Limits on work and on starts. Run it: npx holdfast dev --app examples/flow-control/app.ts */
import { defineActivity, defineOrchestration } from "holdfast";
import { z } from "zod";

/** Twenty mails a second to each customer, however many workers there are. */
export const sendMail = defineActivity("send-mail", {
  input: z.object({ customer: z.string(), text: z.string() }),
  output: z.number(),
  rate: { limit: 20, per: "1s", key: ({ customer }) => customer },
  run: () => Date.now(),
});

/** `{customer, n}` → when each of n mails was sent. */
export const newsletter = defineOrchestration("newsletter", {
  input: z.object({ customer: z.string(), n: z.int().positive() }),
  output: z.array(z.number()),
  run: (ctx, { customer, n }) =>
    Promise.all(Array.from({ length: n }, (_, i) => ctx.run(sendMail, { customer, text: `news ${i}` }))),
});

/** `{ms}` → takes so long; started with a key, so many at a time as it says. */
export const importFile = defineOrchestration("import-file", {
  input: z.object({ ms: z.int().nonnegative() }),
  output: z.object({ from: z.number(), to: z.number() }),
  async run(ctx, { ms }) {
    const from = ctx.now();
    await ctx.sleep(ms);
    return { from, to: ctx.now() };
  },
});
