/** Counters that belong to keys, and an orchestration that uses one. What each run did is in the journal. */
import { setTimeout as delay } from "node:timers/promises";
import { call, defineOrchestration, defineSession } from "holdfast";
import { z } from "zod";
import { note } from "./journal.ts";

const counterOf = (name: string, leaseTtl: "2s" | "15s") =>
  defineSession(name, {
    config: z.object({ from: z.int() }),
    leaseTtl,
    init: (ctx, { from }) => {
      note("init", ctx.session.metadata["holdfast-key"] ?? "?", ctx.session.epoch, process.pid);
      return { n: from };
    },
    calls: (call) => ({
      add: call({
        input: z.int(),
        run: (state, by, ctx) => {
          state.n += by;
          return { n: state.n, epoch: ctx.session.epoch, pid: process.pid };
        },
      }),
      /** Takes so long; says when it begins and when it was cancelled. */
      slow: call({
        input: z.object({ name: z.string(), ms: z.int() }),
        run: async (state, { name, ms }, ctx) => {
          note("slow", name, ctx.session.epoch, process.pid);
          await delay(ms, undefined, { signal: ctx.signal }).catch(() => note("cancelled", name));
          state.n++;
          return { n: state.n, epoch: ctx.session.epoch };
        },
      }),
      tell: call({
        input: z.array(z.string()),
        run: async (_state, words, ctx) => {
          for (const word of words) await ctx.stream.write(word);
          return words.length;
        },
      }),
      fail: call({
        run: (): number => {
          throw Object.assign(new Error("as asked"), { code: "no_good" });
        },
      }),
    }),
  });

export const counter = counterOf("counter", "2s");
/** Its holder may be slow for long before it counts as lost. */
export const steady = counterOf("steady", "15s");

/** The same in Python: a key does not care where the state lives. */
export const pyCounter = defineSession("py-counter", {
  isolation: "process",
  command: ["python3", new URL("../support/apps/hosted/counter.py", import.meta.url)],
  leaseTtl: "2s",
  calls: { count: call({ input: z.int(), output: z.int() }) },
});

export const noWeights = defineSession("no-weights", {
  isolation: "process",
  command: ["/bin/sh", "-c", "echo no weights here >&2; exit 5"],
  calls: { ask: call() },
});

export const adder = defineOrchestration("adder", {
  input: z.object({ key: z.string(), times: z.int() }),
  async run(ctx, { key, times }) {
    await using session = await ctx.session(steady, { key, config: { from: 0 }, onLost: "reclaim" });
    const epochs = new Set<number>();
    let n = 0;
    for (let i = 0; i < times; i++) {
      const answer = await session.add(1);
      n = answer.n;
      epochs.add(answer.epoch);
    }
    return { n, epochs: [...epochs] };
  },
});
