/** One call of a pool by a client outside any instance: an instance that uses the pool for this one call. */
import { z } from "zod";
import { Name, poolCallOrchestration } from "../../../schemas/index.ts";
import {
  type AnySession,
  type App,
  defineOrchestration,
  type PoolOptions,
  validate,
} from "../../../shared/definitions/index.ts";
import { HoldfastError } from "../../../shared/errors/index.ts";

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
      const definition = definitionOf(app, type);
      const found = Object.hasOwn(definition.calls, call) ? definition.calls[call] : undefined;
      if (!found) {
        const names = Object.keys(definition.calls).sort().join(", ") || "none";
        throw new HoldfastError({
          code: "unknown_call",
          message: `session "${type}" has no call ${JSON.stringify(call)}; there are: ${names}`,
        });
      }
      validate(found.input, input, "invalid_input", `input of ${type}.${call}`);
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

function definitionOf(app: App, type: string): AnySession {
  const definition = app.sessions.get(type);
  if (definition) return definition;
  const names = [...app.sessions.keys()].sort().join(", ") || "none";
  throw new HoldfastError({
    code: "unknown_session_type",
    message: `there is no session type ${JSON.stringify(type)}; there are: ${names}`,
  });
}
