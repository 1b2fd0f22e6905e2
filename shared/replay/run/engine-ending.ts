/**
 * Decides when the engine ends an execution by itself because its history is long.
 *
 * CONTINUE-1 Code that waits for nothing but signals gets no further signal once the history is long enough
 *    (rule 3, `currentRules`): it would never be at rest while one is always waiting. The execution ends with that
 *    turn, and its unread signals are carried over, so nothing waits longer for that. The first turn of an
 *    execution is left alone: what is carried over must not end the next one at once.
 */
import { toFailure } from "../../errors/index.ts";
import type { InstanceState } from "../fold/state.ts";
import { hardLimitEvents, historyTooLong } from "../history-limits.ts";
import { continued } from "./code-ending.ts";
import type { IssuedCommand, Recorded } from "./round.ts";
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
  if (isLongEnough(runner, lastEventId) && runner.isAtRest && !runner.needs(2, "autoContinue")) {
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

const isLongEnough = ({ definition, isBeginning }: Runner, lastEventId: number): boolean =>
  !isBeginning && lastEventId >= (definition.autoContinue ?? Number.POSITIVE_INFINITY);

/** `lastEventId`: with the commands issued so far. `recorded`: what history has for this round, if it is replayed. */
export function continuesBeforeNextSignal(
  runner: Runner,
  lastEventId: number,
  recorded: Recorded | undefined,
): boolean {
  const long = isLongEnough(runner, lastEventId);
  // The code may have been deployed with another `autoContinue` since.
  const ends = recorded ? recorded.continuedByEngine && (long || recorded.commands.length === 0) : long;
  return ends && runner.state.rules >= 3 && runner.isAtRest && !runner.needs(2, "autoContinue");
}
