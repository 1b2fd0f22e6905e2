/**
 * Moves a history from its own stream into the shared one. Every step may be repeated, by several archivers
 * at once, after a crash anywhere: seal the own stream, copy under the fence what is not copied yet, compare,
 * delete. Nothing is deleted before the copy was read back, and the copy is never undone: a slow second
 * archiver could not tell that the first had finished.
 */
import { type Commit, endsInstance } from "../../schemas/index.ts";
import type { Bus, StoredMessage } from "../bus/index.ts";
import { headerNames } from "../bus/index.ts";
import { Fault } from "../errors/index.ts";
import { type Runtime, sleep } from "../runtime/index.ts";
import { appendFenced } from "./append-fenced.ts";
import { decodeCommit } from "./codec.ts";
import { commitsOnly, executionStartOf, isCopy, lastCommitSeqOf, sealOf } from "./headers.ts";
import { deleteOwn, type Place, seal } from "./locate.ts";

export interface ArchiveJob {
  bus: Bus;
  runtime: Runtime;
  instanceId: string;
  own: Place;
  shared: Place;
}

/** Returns false if there was nothing to move. */
export async function archiveHistory(job: ArchiveJob): Promise<boolean> {
  const { bus, own } = job;
  const leftOver = await unfinishedMove(job);
  if (leftOver) return deleteOwn(bus, own, leftOver.lastSeq);
  const last = await sealed(job);
  if (last === undefined) return false;
  if (sealOf(last) === "archive") {
    const commits = await readOwn(job, last);
    await copy(job, commits);
  }
  return deleteOwn(bus, own, last.seq);
}

/**
 * Finds an own stream left behind by a move that was never completed, if its instance has since ended in the shared
 * stream (HISTORY-5). Returns the last sequence of the stream; undefined if there is no such stream.
 */
async function unfinishedMove(job: ArchiveJob): Promise<{ lastSeq: number | undefined } | undefined> {
  const { bus, own, shared } = job;
  const copy = await bus.last(own.stream, own.subject, { leader: true });
  if (copy ? !isCopy(copy) : !(await bus.streamInfo(own.stream))) return undefined;
  const last = await bus.last(shared.stream, shared.subject, { leader: true });
  if (!last || sealOf(last) !== undefined) return undefined;
  await requireEnded(job, last);
  return { lastSeq: copy?.seq };
}

/** Returns the seal at the end of the own stream; sets it if it is missing. */
async function sealed(job: ArchiveJob): Promise<StoredMessage | undefined> {
  const { bus, runtime, instanceId, own } = job;
  for (;;) {
    const last = await bus.last(own.stream, own.subject, { leader: true });
    if (last === undefined || sealOf(last) !== undefined) return last;
    await requireEnded(job, last);
    // Conflict: another archiver sealed the stream, or the instance had not ended. Look again in both cases.
    await seal(bus, runtime, instanceId, own, "archive", last);
  }
}

async function requireEnded({ bus, instanceId }: ArchiveJob, last: StoredMessage): Promise<void> {
  const commit: Commit = await decodeCommit(bus, instanceId, last);
  if (commit.events.some(endsInstance)) return;
  throw new Fault("contract", {
    code: "instance_running",
    message: `instance ${instanceId} has not ended: its history stays where it is`,
  });
}

async function readOwn({ bus, runtime, own }: ArchiveJob, last: StoredMessage): Promise<StoredMessage[]> {
  const wanted = lastCommitSeqOf(last);
  for (let attempt = 1; attempt <= 20; attempt++) {
    const messages = commitsOnly((await bus.read(own.stream, own.subject)) ?? []);
    if (messages.at(-1)?.seq === wanted) return messages;
    await sleep(runtime.clock, 10 * attempt);
  }
  throw new Fault("transient", {
    code: "history_incomplete",
    message: `${own.stream} does not return message ${wanted} (a replica may lag)`,
  });
}

async function copy(job: ArchiveJob, commits: StoredMessage[]): Promise<void> {
  const { bus, runtime, instanceId, shared } = job;
  for (let attempt = 1; attempt <= 20; attempt++) {
    const there = (await bus.read(shared.stream, shared.subject)) ?? [];
    const copied = copiesOf(there, commits);
    // The copy was read back and is whole: this is the verification.
    if (copied.length === commits.length) return;
    let lastSeq = there.at(-1)?.seq ?? 0;
    const sequences = new Map(copied.map((message, index) => [commits[index]?.seq, message.seq]));
    for (const [index, commit] of commits.entries()) {
      if (index < copied.length) continue;
      const starts = executionStartOf(commit);
      const outcome = await appendFenced(bus, runtime, instanceId, {
        ...shared,
        expectLastSeq: lastSeq,
        headers: {
          ...copyHeaders(commit, starts === commit.seq ? undefined : sequences.get(starts)),
          ...(index === 0 && { [headerNames.archived]: "true" }),
        },
        body: commit.body,
      });
      // Another archiver is copying too, or a replica showed too little: look again.
      if (outcome.kind === "conflict") break;
      lastSeq = outcome.seq;
      sequences.set(commit.seq, outcome.seq);
    }
    if (attempt > 1) await sleep(runtime.clock, 10 * attempt);
  }
  throw new Fault("transient", {
    code: "archive_incomplete",
    message: `the copy of ${instanceId} in ${shared.stream} could not be completed`,
  });
}

/** The messages of the latest copy, if they equal the first commits to be copied; otherwise none. */
function copiesOf(there: StoredMessage[], commits: StoredMessage[]): StoredMessage[] {
  const start = there.findLastIndex((message) => message.headers[headerNames.archived] !== undefined);
  if (start < 0) return [];
  const copies = there.slice(start);
  const same = copies.every((message, index) => {
    const original = commits[index];
    return (
      original !== undefined &&
      message.headers[headerNames.commit] === original.headers[headerNames.commit] &&
      Buffer.compare(message.body, original.body) === 0
    );
  });
  return same ? copies : [];
}

/** The headers of a commit's copy. Those that describe the commit's old place are left out. */
export function copyHeaders(
  commit: StoredMessage,
  executionStart: number | undefined,
): Record<string, string> {
  const copied: Record<string, string> = {
    [headerNames.commit]: commit.headers[headerNames.commit] ?? `copy-${commit.seq}`,
  };
  const blob = commit.headers[headerNames.blob];
  if (blob !== undefined) copied[headerNames.blob] = blob;
  if (executionStart !== undefined) copied[headerNames.executionStart] = String(executionStart);
  return copied;
}
