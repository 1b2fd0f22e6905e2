import { z } from "zod";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  type OrchestrationContext,
} from "../../../../shared/definitions/index.ts";

export const model = defineSession("model", {
  config: z.object({ size: z.number() }),
  init: (_ctx, config) => ({ config }),
  calls: {
    ask: call({ input: z.string(), output: z.string(), run: (_state, question) => question }),
  },
});
export const other = defineSession("other", { init: () => ({}), calls: {} });
export const add = defineActivity("add", { run: async (_ctx, input: number) => input });

export const flow = (run: (ctx: OrchestrationContext) => Promise<unknown>) => ({
  model,
  other,
  add,
  flow: defineOrchestration("flow", { run }),
});
export const config = { size: 1 };
