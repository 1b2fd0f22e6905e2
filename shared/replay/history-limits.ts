/** How long the history of one execution may be. Counted in events: replay pays for each of them. */
import type { Failure } from "../../schemas/index.ts";

/**
 * From here on `ctx.suggestContinueAsNew` is true. Not a setting: the code decides by it, and must decide the same on
 * replay.
 */
export const softLimitEvents = 10_000;

/** Unless the operator says otherwise, an execution ends with an error here. */
export const hardLimitEvents = 100_000;

export const historyTooLong = (events: number, limit: number): Failure => ({
  code: "history_too_long",
  message: `the history of this execution has ${events} events, and ${limit} is the limit: continue as new before (ctx.suggestContinueAsNew, autoContinue)`,
  retryable: false,
  details: { events, limit },
});
