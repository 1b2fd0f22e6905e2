/** The application of the inference workload: one model, used in every supported way. */
import { defineActivity, defineOrchestration, type OrchestrationContext } from "holdfast";
import { loadPipeline, textModel } from "holdfast/inference";
import { machineMs } from "../clock.ts";
import { batchSize, model, texts } from "./model.ts";

export { held, stampedCalls } from "./held.ts";

const batch = { maxSize: batchSize, maxDelay: "4ms" } as const;

const textOf = (index: number): string => texts[index % texts.length] ?? "";

export const oneByOne = textModel({ ...model, name: "one-by-one", batch: false });
export const batched = textModel({ ...model, name: "batched", batch });
export const batchedThread = textModel({
  ...model,
  name: "batched-thread",
  batch,
  session: { isolation: "thread" },
});
export const pooled = textModel({ ...model, name: "pooled", batch });

/** The model is loaded, asked and thrown away. */
export const coldCall = defineActivity("cold-call", {
  async run(_ctx, text: string) {
    await using pipeline = await loadPipeline({ ...model, task: "text-classification" });
    return pipeline.run([text]);
  },
});

export interface InferInput {
  way: "cold" | "one-by-one" | "batched" | "batched-thread" | "pooled";
  texts: number;
  /** Calls at a time. */
  width: number;
}

/** Sends `texts` texts, `width` at a time. Returns the milliseconds from the first call to the last answer. */
export const infer = defineOrchestration("infer", {
  async run(ctx, { way, texts: count, width }: InferInput): Promise<number> {
    const ask = await open(ctx, way);
    await ask(textOf(0));
    const since = ctx.sideEffect(machineMs);
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < count) await ask(textOf(next++));
    };
    await Promise.all(Array.from({ length: width }, lane));
    return ctx.sideEffect(machineMs) - since;
  },
});

async function open(
  ctx: OrchestrationContext,
  way: InferInput["way"],
): Promise<(text: string) => Promise<unknown>> {
  switch (way) {
    case "cold":
      return (text) => ctx.run(coldCall, text);
    case "one-by-one":
      return (await ctx.openSession(oneByOne)).classify;
    case "batched":
      return (await ctx.openSession(batched)).classify;
    case "batched-thread":
      return (await ctx.openSession(batchedThread)).classify;
    case "pooled":
      return (await ctx.usePool(pooled, { min: 2, max: 2 })).classify;
  }
}
