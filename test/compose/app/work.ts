/** What workers run. */
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { call, defineActivity, defineSession } from "holdfast";
import { z } from "zod";

export const step = defineActivity("step", {
  input: z.int(),
  output: z.int(),
  run: async (_ctx, count) => count + 1,
});

/** Costs nothing to hold. */
export const room = defineSession("room", { idleTimeout: 0, init: () => ({}), calls: {} });

/** Counts in memory, and says where. */
export const tally = defineSession("tally", {
  idleTimeout: 0,
  init: () => ({ count: 0 }),
  calls: {
    add: call({
      input: z.object({ ms: z.int().nonnegative().default(0) }),
      output: z.object({ count: z.int(), host: z.string() }),
      async run(state: { count: number }, { ms }, { signal, log }) {
        log.info(`adding for ${ms} ms`);
        await delay(ms, undefined, { signal });
        state.count += 1;
        return { count: state.count, host: hostname() };
      },
    }),
  },
});
