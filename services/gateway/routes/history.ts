/** Commits as a flat list of dated events. */
import { z } from "zod";
import { type Commit, HistoryEvent } from "../../../schemas/index.ts";

/** An event with the time of its turn; `event` is as recorded. */
export const DatedEvent = z.strictObject({ at: z.number(), event: HistoryEvent });
export type DatedEvent = z.infer<typeof DatedEvent>;

export const HistoryPage = z.strictObject({
  execution: z.int(),
  /** Executions whose events are still stored. */
  executions: z.array(z.int()),
  /** Number of all events of this execution. */
  total: z.int(),
  events: z.array(DatedEvent),
});
export type HistoryPage = z.infer<typeof HistoryPage>;

export function historyPage(
  commits: readonly Commit[],
  want: { execution?: number | undefined; after: number; limit: number },
): HistoryPage {
  const executions = [...new Set(commits.map((commit) => commit.execution))].sort((a, b) => a - b);
  const execution = want.execution ?? executions.at(-1) ?? 0;
  const events = commits
    .filter((commit) => commit.execution === execution)
    .flatMap((commit) => commit.events.map((event) => ({ at: commit.at, event })));
  return {
    execution,
    executions,
    total: events.length,
    events: events.filter(({ event }) => event.id > want.after).slice(0, want.limit),
  };
}
