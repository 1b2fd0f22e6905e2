/** An orchestration that answers queries and updates and records a given number of events, two per step. */
import { defineOrchestration } from "holdfast";
import { step } from "../../examples/basics/app.ts";

export const asked = defineOrchestration("asked", {
  async run(ctx, { steps, ms = 0 }: { steps: number; ms?: number }) {
    let done = 0;
    ctx.onQuery("done", () => done);
    ctx.onUpdate("add", (n) => {
      done += Number(n);
      return done;
    });
    const times = [ctx.now()];
    for (let index = 0; index < steps; index++) {
      await ctx.run(step, { index, ms });
      done++;
      times.push(ctx.now());
    }
    await ctx.waitForSignal("go");
    return times;
  },
});
