/** A mistake on purpose: two deposits at once read the same balance, and one of them is lost. docs/testing.md finds it. */
import { defineActivity, defineOrchestration } from "holdfast";

export const readBalance = defineActivity<string, number>("read-balance", { run: () => 0 });
export const writeBalance = defineActivity<number, null>("write-balance", { run: () => null });
export const deposit = defineOrchestration("deposit", {
  async run(ctx, amount: number) {
    const balance = await ctx.run(readBalance, "ada");
    await ctx.run(writeBalance, balance + amount);
    return null;
  },
});
