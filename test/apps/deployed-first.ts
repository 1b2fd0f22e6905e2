/** The deployment that instances begin on. */
import { defineActivity, defineOrchestration } from "holdfast";

export const reserve = defineActivity("reserve", { run: async (_ctx, item: string) => `reserved ${item}` });
export const pay = defineActivity("pay", { run: async (_ctx, item: string) => `paid ${item}` });

export const order = defineOrchestration("order", {
  async run(ctx, item: string) {
    const reserved = await ctx.run(reserve, item);
    const approved = await ctx.waitForSignal<boolean>("approved");
    const paid = await ctx.run(pay, item);
    return { reserved, approved, paid };
  },
});
