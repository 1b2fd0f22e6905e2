/** Reads the commits of a history that was located just before. */
import type { Bus, StoredMessage } from "../bus/index.ts";
import { Fault } from "../errors/index.ts";
import { type Clock, sleep } from "../runtime/index.ts";
import { commitsOnly, lastCommitSeqOf } from "./headers.ts";
import type { Located } from "./locate.ts";

/** Tries before a reader gives up on a history that moves or is not visible yet; the caller tries again. */
export const maxReads = 20;

export const incomplete = (message: string): Fault =>
  new Fault("transient", { code: "history_incomplete", message });

/**
 * Replicas may lag behind the last message that was located. Returns undefined if the stream was deleted
 * since.
 */
export async function readLocated(
  bus: Bus,
  clock: Clock,
  { stream, subject, last }: Located,
  fromSeq: number,
): Promise<StoredMessage[] | undefined> {
  const wanted = lastCommitSeqOf(last);
  if (fromSeq > wanted) return [];
  if (wanted === last.seq && fromSeq === wanted) return [last];
  for (let attempt = 1; attempt <= maxReads; attempt++) {
    const all = await bus.read(stream, subject, fromSeq);
    if (!all) return undefined;
    const messages = commitsOnly(all);
    if ((messages.at(-1)?.seq ?? 0) >= wanted) return messages;
    await sleep(clock, 10 * attempt);
  }
  throw incomplete(`${stream} does not return message ${wanted} of ${subject} (a replica may lag)`);
}
