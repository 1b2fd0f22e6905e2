/**
 * Events and session states without what came with generation 2 (E1): written while a process is alive that refuses
 * fields it does not know. What is left out is a hint or a finer count; its absence means what it meant before.
 */
import type { HistoryEvent, NewEvent, SessionOptions, SessionState } from "../../../schemas/index.ts";

/** A version before generation 2 cannot fold these: their commits say so. */
export const isOfSecondGeneration = (event: HistoryEvent): boolean =>
  event.kind.startsWith("update.") ||
  event.kind === "end.requested" ||
  (event.kind === "activity.scheduled" && event.target.kind === "local");

export function eventOfFirstGeneration(event: NewEvent): NewEvent {
  switch (event.kind) {
    case "activity.attempt_failed": {
      const { interruption: _, ...rest } = event;
      return rest;
    }
    case "signal.received": {
      const { messageId: _, ...rest } = event;
      return rest;
    }
    case "session.opened":
      return { ...event, options: optionsOfFirstGeneration(event.options) };
    case "pool.lent":
      return { ...event, member: stateOfFirstGeneration(event.member) };
    case "instance.started": {
      const { carried, granted, rules: _rules, ...rest } = event;
      return {
        ...rest,
        ...(granted && { granted: granted.map(stateOfFirstGeneration) }),
        ...(carried && {
          carried: carriedOfFirstGeneration(carried),
        }),
      };
    }
    default:
      return event;
  }
}

type Carried = NonNullable<NewEvent<"instance.started">["carried"]>;

function carriedOfFirstGeneration({ messageIds: _, ...rest }: Carried): Carried {
  return { ...rest, sessions: rest.sessions.map(stateOfFirstGeneration) };
}

export function stateOfFirstGeneration(state: SessionState): SessionState {
  const { inits: _inits, parkedBy: _parkedBy, attachmentsBefore: _before, ...rest } = state;
  return { ...rest, options: optionsOfFirstGeneration(state.options) };
}

function optionsOfFirstGeneration(options: SessionOptions): SessionOptions {
  const { concurrency: _concurrency, maxBatch: _maxBatch, affinity: _affinity, ...rest } = options;
  return rest;
}
