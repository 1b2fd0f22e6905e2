/** An instance that reports `{done, of}` as its status, shown while it runs. */
import type { Client, HistoryEntry } from "holdfast";
import { z } from "zod";

const Status = z.object({ done: z.number(), of: z.number() });
const lookEveryMs = 150;

/** Calls `onProgress` with what is done so far; ends with the instance. */
export async function follow(
  client: Client,
  instanceId: string,
  onProgress: (done: number, of: number) => Promise<void> | void,
): Promise<void> {
  for (let ended = false; !ended; ) {
    const view = await client.waitForEnd(instanceId, lookEveryMs, { known: true });
    ended = view?.endedAt !== undefined;
    const status = Status.safeParse(view?.customStatus);
    if (status.success) await onProgress(status.data.done, status.data.of);
  }
}

export type EventOf<K extends HistoryEntry["kind"]> = Extract<HistoryEntry, { kind: K }>;

export const eventsOf = <K extends HistoryEntry["kind"]>(
  history: readonly HistoryEntry[],
  kind: K,
): EventOf<K>[] => history.filter((event): event is EventOf<K> => event.kind === kind);

/** Waits for a fact of the history. */
export async function untilHistory<T>(
  client: Client,
  instanceId: string,
  find: (history: readonly HistoryEntry[]) => T | undefined,
): Promise<T> {
  for (;;) {
    const found = find(await client.history(instanceId));
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
}
