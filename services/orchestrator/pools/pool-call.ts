/** One call of a pool by a client outside any instance: an instance that uses the pool for this one call. */
import { z } from "zod";
import { Name, poolCallOrchestration } from "../../../schemas/index.ts";
import { type App, defineOrchestration, type PoolOptions } from "../../../shared/definitions/index.ts";
import { checkCall, findSessionType } from "../find-session-call.ts";

const PoolCall = z.object({
  type: Name,
  call: z.string(),
  input: z.unknown().optional(),
  options: z.record(z.string(), z.unknown()).default({}),
  timeoutMs: z.int().positive().optional(),
});

type Calls = Record<string, (input: unknown) => Promise<unknown>>;

export const poolCall = (app: App) =>
  defineOrchestration(poolCallOrchestration, {
    input: PoolCall,
    async run(ctx, { type, call, input, options, timeoutMs }) {
      const definition = findSessionType(app, type);
      checkCall(definition, call, input);
      const once = async (own: typeof ctx) => {
        const pool = await own.usePool(definition, options as PoolOptions);
        try {
          return await (pool as unknown as Calls)[call]?.(input);
        } finally {
          await pool.close();
        }
      };
      return timeoutMs === undefined ? once(ctx) : ctx.timeout(timeoutMs, (own) => once(own as typeof ctx));
    },
  });
