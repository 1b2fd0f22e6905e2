/** What the pages of docs/ talk about and no example has, beside the examples: their commands run against it. */
import { call, defineOrchestration, definePool, defineSession } from "holdfast";
import { z } from "zod";

export * from "../../examples/basics/app.ts";
export * from "../../examples/cart/app.ts";
export * from "../../examples/first/app.ts";

export const importFile = defineOrchestration("import", {
  input: z.object({ file: z.string() }),
  run: async (_ctx, { file }) => file,
});

export const report = defineOrchestration("report", {
  input: z.object({ of: z.string() }).optional(),
  run: async (_ctx, input) => input?.of ?? "today",
});

export const conversation = defineSession("conversation", {
  config: z.object({ model: z.string() }),
  init: (_ctx, { model }) => ({ model }),
  calls: {
    ask: call({ input: z.string(), output: z.string(), run: ({ model }: { model: string }) => model }),
  },
});

export const classifier = defineSession("classifier", {
  init: () => ({}),
  calls: { classify: call({ input: z.string(), output: z.string(), run: (_state, text) => text }) },
});
export const classifiers = definePool(classifier, { min: 1, max: 2 });
