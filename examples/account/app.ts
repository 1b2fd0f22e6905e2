/**
 * An account that lives for years: its state outlives its executions, and its history stays short by itself. Run it:
 * npx holdfast dev --app examples/account/app.ts
 */
import { defineOrchestration, defineUpdate } from "holdfast";
import { z } from "zod";

/** Pays in, or out where it is negative; answers the balance. */
export const move = defineUpdate("move", { input: z.number(), output: z.number() });

/** Ends with its last balance when the signal `close` comes. */
export const account = defineOrchestration("account", {
  output: z.number(),
  state: { balance: 0, moves: 0, closed: false },
  queries: { statement: ({ balance, moves }) => ({ balance, moves }) },
  autoContinue: 1000,
  async run(ctx) {
    ctx.onUpdate(
      move,
      (amount) => {
        ctx.state.moves += 1;
        ctx.state.balance += amount;
        return ctx.state.balance;
      },
      {
        validate: (amount) => {
          if (ctx.state.balance + amount < 0) throw new Error("not enough money");
        },
      },
    );
    await ctx.waitForSignal("close");
    return ctx.state.balance;
  },
});
