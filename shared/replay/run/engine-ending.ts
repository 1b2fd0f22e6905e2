/** Decides when the engine ends an execution by itself because its history is long. */
import { toFailure } from "../../errors/index.ts";
import type { InstanceState } from "../fold/state.ts";
import { hardLimitEvents, historyTooLong } from "../history-limits.ts";
import { continued } from "./code-ending.ts";
import type { IssuedCommand } from "./round.ts";
import type { Runner } from "./runner.ts";

/**
 * Returns the event that ends the execution, marked `by: "engine"` so that replay does not expect it from the code.
 * Undefined: the execution continues.
 */
export function engineEnding(
  runner: Runner,
  { lastEventId, status, next, input = { json: undefined } }: InstanceState,
  historyLimit = hardLimitEvents,
): IssuedCommand | undefined {
  if (status !== "running" || next) return undefined;
  const { autoContinue = Number.POSITIVE_INFINITY } = runner.definition;
  if (lastEventId >= autoContinue && runner.isAtRest && !runner.needs(2, "autoContinue")) {
    try {
      const { event, payloadBytes } = continued(runner, { payload: input, bytes: 0 }, runner.stateSnapshot());
      return { event: { ...event, by: "engine" }, payloadBytes };
    } catch (error) {
      // `ctx.state` holds a value that cannot be stored: that fails the execution, like any error.
      return { event: { kind: "instance.failed", error: toFailure(error), by: "engine" }, payloadBytes: 0 };
    }
  }
  if (lastEventId < historyLimit) return undefined;
  const error = historyTooLong(lastEventId, historyLimit);
  return { event: { kind: "instance.failed", error, by: "engine" }, payloadBytes: 0 };
}
