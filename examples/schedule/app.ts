/** A report by the clock. Run it: npx holdfast dev --app examples/schedule/app.ts */
import { defineActivity, defineOrchestration } from "holdfast";
import { z } from "zod";

const countSales = defineActivity("count-sales", {
  input: z.object({ shop: z.string(), at: z.number() }),
  output: z.string(),
  run: (_ctx, { shop, at }) => `${shop}: ${new Date(at).toISOString().slice(0, 10)}`,
});

/** `{shop}` → a line about the day it was started on. */
export const dailyReport = defineOrchestration("daily-report", {
  input: z.object({ shop: z.string() }),
  output: z.string(),
  run: (ctx, { shop }) => ctx.local(countSales, { shop, at: ctx.now() }),
});

export { countSales };
