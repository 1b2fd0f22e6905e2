/** How long the history of one execution may be. Counted in events, because replay costs time for each. */
import type { Failure } from "../../schemas/index.ts";

/**
 * From this length on `ctx.suggestContinueAsNew` is true. Not a setting: the code decides by it, and must
 * decide the same on replay.
 */
export const softLimitEvents = 10_000;

/** At this length an execution ends with an error, unless the operator sets another limit. */
export const hardLimitEvents = 100_000;

export const historyTooLong = (events: number, limit: number): Failure => ({
  code: "history_too_long",
  message: `the history of this execution has ${events} events, and ${limit} is the limit: continue as new before (ctx.suggestContinueAsNew, autoContinue)`,
  retryable: false,
  details: { events, limit },
});
