/** Work that speaks: each step writes so many tokens, one after the other. */
import { setTimeout as pause } from "node:timers/promises";
import { call, defineActivity, defineOrchestration, defineSession } from "holdfast";

export const tokensPerStep = 60;

export const speak = defineActivity("speak", {
  async run(ctx, step: number) {
    for (let token = 0; token < tokensPerStep; token++) {
      await ctx.stream.write(token);
      await pause(8);
    }
    return step;
  },
});

export const speaker = defineSession("speaker", {
  leaseTtl: "2s",
  init: async () => ({ steps: 0 }),
  calls: {
    speak: call({
      async run(state: { steps: number }, step: number, ctx) {
        for (let token = 0; token < tokensPerStep; token++) {
          await ctx.stream.write(token);
          await pause(8);
        }
        state.steps++;
        return step;
      },
    }),
  },
});

/** Writes in turns by an activity and by a session, until a signal stops it. */
export const speech = defineOrchestration("speech", {
  async run(ctx) {
    await using session = await ctx.openSession(speaker, {
      onLost: "reclaim",
      recovery: { maxAutoRetries: 100 },
    });
    let stopped = false;
    void ctx.waitForSignal("stop").then(() => {
      stopped = true;
    });
    let step = 0;
    for (; !stopped; step++)
      await (step % 2 === 0 ? ctx.run(speak, step, { retry: { maxAttempts: 100 } }) : session.speak(step));
    return step;
  },
});
