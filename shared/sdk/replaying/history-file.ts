/** Histories as files: their format, and how one is written. */
import { z } from "zod";
import { Commit, type HistoryEvent, payloadsOf, wireObject } from "../../../schemas/index.ts";
import type { Payloads } from "../../bus/index.ts";

/** An instance's history as a file: `holdfast history <id> --export` and `client.historyFile` write it. */
export const HistoryFile = wireObject({
  format: z.literal("holdfast-history"),
  v: z.literal(1),
  instanceId: z.string(),
  commits: z.array(Commit),
  /** Values too big for a message, by the key of their blob; undefined if they were not fetched. */
  values: z.record(z.string(), z.unknown()).optional(),
});
export type HistoryFile = z.infer<typeof HistoryFile>;

/** One event with the time of its turn and its execution. Values are as recorded. */
export type HistoryEntry = { execution: number; at: number } & HistoryEvent;

export const historyFile = (
  instanceId: string,
  commits: readonly Commit[],
  values?: Record<string, unknown>,
): HistoryFile => ({
  format: "holdfast-history",
  v: 1,
  instanceId,
  commits: [...commits],
  ...(values === undefined || Object.keys(values).length === 0 ? {} : { values }),
});

export const entriesOf = (commits: readonly Commit[]): HistoryEntry[] =>
  commits.flatMap(({ execution, at, events }) => events.map((event) => ({ execution, at, ...event })));

/** Fetches the values in the object store that the code saw. A value deleted since is left out. */
export async function storedValues(
  commits: readonly Commit[],
  payloads: Payloads,
): Promise<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const { events } of commits) {
    for (const payload of events.flatMap(payloadsOf)) {
      if (!("blob" in payload) || payload.blob.key in values) continue;
      const value = await payloads.unwrap(payload).catch(() => undefined); // deleted with its instance
      if (value !== undefined) values[payload.blob.key] = value;
    }
  }
  return values;
}
