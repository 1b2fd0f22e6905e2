/** The same application after a change of the order of steps, while instances run. */
import { defineOrchestration } from "holdfast";
import { pay, reserve } from "./deployed-first.ts";

export { pay, reserve };

export const order = defineOrchestration("order", {
  async run(ctx, item: string) {
    const paid = await ctx.run(pay, item);
    const reserved = await ctx.run(reserve, item);
    const approved = await ctx.waitForSignal<boolean>("approved");
    return { reserved, approved, paid };
  },
});
