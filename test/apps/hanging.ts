/** Calls that keep a thread busy, on the worker's own loop and away from it. */
import { call, defineOrchestration, defineSession } from "holdfast";
import { note } from "./journal.ts";

const block = (ms: number) => {
  const until = Date.now() + ms;
  while (Date.now() < until);
};

const calls = {
  block: call({
    async run(state: { n: number }, ms: number, ctx) {
      note("block", ctx.session.id, ctx.session.epoch);
      block(ms);
      return ++state.n;
    },
  }),
  /** Says nothing for longer than it may. */
  silent: call({
    heartbeatTimeout: "1s",
    async run(state: { n: number }, ms: number, ctx) {
      note("silent", ctx.session.id, ctx.session.epoch);
      await new Promise((resolve) => setTimeout(resolve, ms));
      return ++state.n;
    },
  }),
};

const init = () => ({ n: 0 });

export const inline = defineSession("inline", { leaseTtl: "2s", init, calls });
export const threaded = defineSession("threaded", { leaseTtl: "2s", isolation: "thread", init, calls });
export const processed = defineSession("processed", { leaseTtl: "2s", isolation: "process", init, calls });

/** Its `init` keeps the worker's own loop. */
export const busy = defineSession("busy", { leaseTtl: "2s", init: () => block(4500), calls: {} });

export const opensBusy = defineOrchestration("opensBusy", {
  async run(ctx) {
    return await ctx.openSession(busy, { creationTimeout: "60s", maxInitAttempts: 1 }).then(
      () => "opened",
      (error) => ({ code: error.code, message: error.message }),
    );
  },
});

const types = { inline, threaded, processed };

export const blocks = defineOrchestration("blocks", {
  async run(ctx, { type, how, ms }: { type: keyof typeof types; how: keyof typeof calls; ms: number }) {
    const session = await ctx.openSession(types[type], { creationTimeout: "60s" });
    const first = await session[how](0);
    const then = await session[how](ms).catch((error) => ({ code: error.code, reason: error.reason }));
    const last = await session[how](0).catch((error) => error.code);
    return { first, then, last };
  },
});
