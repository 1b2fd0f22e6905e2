/**
 * Removes from events and session states the fields that came with generation 2 (E1). Used while a process is
 * alive that refuses fields it does not know. The removed fields are hints or finer counts; without them a
 * history means what it meant before generation 2.
 */
import type { HistoryEvent, NewEvent, SessionOptions, SessionState } from "../../../schemas/index.ts";

/** A version before generation 2 cannot fold these events: their commits are marked. */
export const isOfSecondGeneration = (event: HistoryEvent): boolean =>
  event.kind.startsWith("update.") ||
  event.kind.startsWith("session.metadata_") ||
  event.kind === "session.blob_changed" ||
  event.kind === "end.requested" ||
  (event.kind === "activity.scheduled" && event.target.kind === "local") ||
  (event.kind === "pool.joined" && event.pool.keyed !== undefined) ||
  (event.kind === "session.lent" && event.lending.shared === true);

export function eventOfFirstGeneration(event: NewEvent): NewEvent {
  switch (event.kind) {
    case "activity.scheduled": {
      if (event.target.kind !== "queue" || event.target.preferWorkerOf === undefined) return event;
      const { preferWorkerOf: _, ...target } = event.target;
      return { ...event, target };
    }
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
  const {
    inits: _inits,
    rebuilds: _rebuilds,
    blobs: _blobs,
    parkedBy: _parkedBy,
    attachmentsBefore: _before,
    ...rest
  } = state;
  return { ...rest, options: optionsOfFirstGeneration(state.options) };
}

function optionsOfFirstGeneration(options: SessionOptions): SessionOptions {
  const {
    concurrency: _concurrency,
    maxBatch: _maxBatch,
    affinity: _affinity,
    whenFull: _whenFull,
    ...rest
  } = options;
  return rest;
}
