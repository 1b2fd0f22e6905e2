/** Takes a stored commit apart for its replay: one part for each run of the code (`Commit.rounds`). */
import { type Commit, endsInstance, type HistoryEvent, isCommand } from "../../schemas/index.ts";
import type { InstanceState } from "./fold/state.ts";

interface Round {
  readonly events: readonly HistoryEvent[];
  /** True if the code did not run: it sees these facts in a later turn (T6, T9). */
  readonly deferred: boolean;
}

export function roundsOf({ events, rounds, deferred: isDeferred }: Commit): Round[] {
  const deferred = isDeferred === true;
  if (!rounds) return [{ events, deferred }];
  const parts: HistoryEvent[][] = [[]];
  for (const event of events) {
    if (rounds.includes(event.id)) parts.push([]);
    parts.at(-1)?.push(event);
  }
  return parts.map((part, index) => ({ events: part, deferred: deferred && index === parts.length - 1 }));
}

/** `lead`: the facts that the code saw. `rest`: what it then decided, and what the engine added. */
export function splitAtFirstCommand(events: readonly HistoryEvent[]) {
  const first = events.findIndex(isCommand);
  return first < 0 ? { lead: events, rest: [] } : { lead: events.slice(0, first), rest: events.slice(first) };
}

/** True for an event that ends its execution. */
export const endsExecution = (event: HistoryEvent): boolean =>
  endsInstance(event) || event.kind === "instance.continued";

/** True if this turn ended the instance without its code, which never saw the other facts of the turn. */
export const endedByMessage = (
  events: readonly HistoryEvent[],
  { cancelRequested }: InstanceState,
): boolean =>
  events.some(
    ({ kind }) =>
      kind === "instance.terminated" ||
      // The code ends as cancelled only after a request to cancel.
      (kind === "instance.cancelled" &&
        !cancelRequested &&
        !events.some((event) => event.kind === "cancel.requested")),
  );
