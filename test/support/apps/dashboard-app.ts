/** What the dashboard's tests watch: a session that is lost, a wait for people, work and a failure. */

import {
  call,
  defineActivity,
  defineOrchestration,
  defineQuery,
  defineSession,
  defineUpdate,
} from "holdfast";
import { z } from "zod";

export const notebook = defineSession("notebook", {
  leaseTtl: "2s",
  idleTimeout: 0,
  init: () => ({ pages: 0 }),
  calls: {
    write: call({
      input: z.string(),
      output: z.int(),
      async run(state: { pages: number }, _text, { signal }) {
        await new Promise((resolve, reject) => {
          const timer = setTimeout(resolve, 150);
          signal.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(signal.reason);
          });
        });
        state.pages++;
        return state.pages;
      },
    }),
  },
  snapshot: (state) => ({ pages: state.pages }),
});

export const greet = defineActivity("greet", { run: async (_ctx, name: string) => `Hello, ${name}!` });

/** Writes until it is stopped. */
export const diary = defineOrchestration("diary", {
  input: z.object({ pages: z.int().min(1).max(1000), title: z.string().default("Dear diary") }),
  async run(ctx, { pages, title }) {
    await using session = await ctx.openSession(notebook, { onLost: "reclaim", creationTimeout: "60s" });
    let written = 0;
    for (let page = 0; page < pages; page++) {
      await session.write(`${title}, page ${page}`);
      written++;
      if (page % 10 === 0) ctx.setStatus({ written });
    }
    return written;
  },
});

export const hello = defineOrchestration("hello", {
  input: z.object({ name: z.string().min(1) }),
  run: (ctx, { name }) => ctx.run(greet, name),
});

export const contents = defineQuery("contents", { output: z.array(z.string()) });
export const put = defineUpdate("put", { input: z.string(), output: z.int() });

/** Answers a query, takes an update, and ends with a signal. */
export const tray = defineOrchestration("tray", {
  async run(ctx) {
    const things: string[] = [];
    ctx.onQuery(contents, () => things);
    ctx.onUpdate(put, (thing) => things.push(thing));
    await ctx.waitForSignal("served");
    return things;
  },
});

export const approval = defineOrchestration("approval", {
  run: async (ctx) => ({ approved: await ctx.waitForSignal("approve") }),
});

/** No machine of a test has one. */
export const rare = defineSession("rare", {
  requires: { tags: ["h100"] },
  init: () => ({}),
  calls: { ask: call({ run: () => "rare" }) },
});

export const wantsRare = defineOrchestration("wants-rare", {
  async run(ctx) {
    await using session = await ctx.openSession(rare, { creationTimeout: "5m" });
    return session.ask(null);
  },
});
