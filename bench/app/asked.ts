/** Answers queries and updates; has as many events as it is told to, two for each step. */
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
