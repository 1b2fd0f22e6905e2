/** Sessions whose worker dies while a call runs: in the worker itself, and in a process of their own. */
import { call, defineOrchestration, defineSession, SessionLostError } from "holdfast";
import { z } from "zod";
import { note } from "./journal.ts";

const calls = {
  /** Runs until its process ends; `blocking`: without ever yielding. */
  wait: call({
    async run(_state: object, blocking: boolean, ctx): Promise<string> {
      note("waits", ctx.session.id, ctx.session.workerId, process.pid);
      while (blocking);
      await new Promise<void>((_resolve, reject) =>
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason), { once: true }),
      );
      return "never";
    },
  }),
  hello: call({ run: async () => "hello" }),
};

export const inline = defineSession("inline", { init: () => ({}), calls });
export const hosted = defineSession("hosted", { isolation: "process", init: () => ({}), calls });

export const held = defineOrchestration("held", {
  input: z.object({
    hosted: z.boolean().default(false),
    blocking: z.boolean().default(false),
  }),
  async run(ctx, input) {
    const session = await ctx.openSession(input.hosted ? hosted : inline, { id: ctx.instanceId });
    const first = session.info;
    try {
      return { first, outcome: await session.wait(input.blocking) };
    } catch (error) {
      if (!(error instanceof SessionLostError)) throw error;
      return { first, outcome: error.reason };
    }
  },
});

/** Goes on elsewhere; `wait` ends only with its worker, so it is called once. */
export const moved = defineOrchestration("moved", {
  async run(ctx) {
    const session = await ctx.openSession(inline, { id: ctx.instanceId, onLost: "fail" });
    const before = session.info.workerId;
    await session.wait(false).catch((error: unknown) => {
      if (!(error instanceof SessionLostError)) throw error;
    });
    const next = await ctx.openSession(inline, { id: `${ctx.instanceId}-2` });
    return { before, after: next.info.workerId, answer: await next.hello() };
  },
});
