/**
 * Moves the history of a running instance from the shared stream into a stream of its own. Instances begin in
 * the shared streams, because most of them end within a moment, and the server takes longer to make a stream
 * than to run them.
 *
 * HISTORY-5 The copy counts when the shared stream is sealed behind the last commit that was copied. The seal
 *    is fenced: a mover that does not know the last commit seals nothing, and what it copied is the beginning
 *    of what the next mover copies. After the seal no commit can be appended to the shared stream.
 */
import { headerNames, type StoredMessage } from "../bus/index.ts";
import { appendFenced } from "./append-fenced.ts";
import { type ArchiveJob, copyHeaders } from "./archive.ts";
import { commitsOnly, executionStartOf, isCopy } from "./headers.ts";
import { seal } from "./locate.ts";

/** The position after the last copy, where the history continues. */
interface Moved {
  readonly lastSeq: number;
  readonly executionStartSeq: number;
}

/** The own stream is there already. Returns undefined if this mover does not know the last commit. */
export async function moveToOwn(job: ArchiveJob, lastSeq: number): Promise<Moved | undefined> {
  const { bus, runtime, instanceId, own, shared } = job;
  const commits = commitsOnly((await bus.read(shared.stream, shared.subject)) ?? []);
  const last = commits.at(-1);
  if (!last || last.seq !== lastSeq) return undefined;
  const copies = (await bus.read(own.stream, own.subject)) ?? [];
  if (!copies.every((copy, index) => isCopyOf(copy, commits[index]))) return undefined;
  const sequences = new Map(copies.map((copy, index) => [commits[index]?.seq, copy.seq]));
  let copied = copies.at(-1)?.seq ?? 0;
  for (const commit of commits.slice(copies.length)) {
    const starts = executionStartOf(commit);
    const start = starts === commit.seq ? undefined : sequences.get(starts);
    const outcome = await appendFenced(bus, runtime, instanceId, {
      ...own,
      expectLastSeq: copied,
      headers: { ...copyHeaders(commit, start), [headerNames.copied]: "true" },
      body: commit.body,
    });
    if (outcome.kind === "conflict") return undefined;
    copied = outcome.seq;
    sequences.set(commit.seq, outcome.seq);
  }
  const sealed = await seal(bus, runtime, instanceId, shared, "own", last);
  if (sealed.kind === "conflict") return undefined;
  return { lastSeq: copied, executionStartSeq: sequences.get(executionStartOf(last)) ?? copied };
}

const isCopyOf = (copy: StoredMessage, commit: StoredMessage | undefined): boolean =>
  commit !== undefined &&
  isCopy(copy) &&
  copy.headers[headerNames.commit] === commit.headers[headerNames.commit];
