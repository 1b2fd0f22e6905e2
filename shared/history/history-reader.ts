/**
 * Reads histories without changing them: nothing is sealed, moved or repaired. A history is read a page at a
 * time, so that it need not fit into memory.
 */
import type { Commit } from "../../schemas/index.ts";
import type { Bus, StoredMessage, Subjects } from "../bus/index.ts";
import { headerNames } from "../bus/index.ts";
import { decodeCommit, overflowRef } from "./codec.ts";
import { isCopy, lastCommitSeqOf, sealOf } from "./headers.ts";
import { isFirstCommit, ownPlace, type Place, sharedPlace } from "./locate.ts";

export interface FoundHistory extends Place {
  /** Sequence of the history's last commit. */
  readonly lastSeq: number;
  /** Server time of the last message. */
  readonly at: number;
  /**
   * True if the shared stream also has commits of the instance that are not a copy of this history. A single first
   * commit does not count: its owner saw the own stream afterwards and yielded (HISTORY-2).
   */
  readonly alsoShared: boolean;
}

interface ReadCommit {
  readonly commit: Commit;
  readonly seq: number;
  /** Server time of storage. For an archived history: when it was archived. */
  readonly storedAt: number;
  /** Size of its JSON. */
  readonly bytes: number;
}

export class HistoryReader {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #shards: number;

  constructor(bus: Bus, names: Subjects, shards: number) {
    this.#bus = bus;
    this.#names = names;
    this.#shards = shards;
  }

  /** HISTORY-1: an own stream with a commit is the truth, until it is gone or sealed as moved. */
  async find(instanceId: string): Promise<FoundHistory | undefined> {
    const own = ownPlace(this.#names, instanceId);
    const shared = sharedPlace(this.#names, instanceId, this.#shards);
    const leader = this.#bus.clustered();
    const [ownLast, sharedLast] = await Promise.all([
      this.#bus.last(own.stream, own.subject, { leader }),
      this.#bus.last(shared.stream, shared.subject, { leader }),
    ]);
    if (sharedLast && sealOf(sharedLast) === "own") {
      // HISTORY-5. Read again: what was read before may be from before the move.
      const last = await this.#bus.last(own.stream, own.subject, { leader });
      if (last) return { ...own, lastSeq: lastCommitSeqOf(last), at: last.at, alsoShared: false };
    } else if (ownLast && sealOf(ownLast) !== "moved" && !isCopy(ownLast)) {
      // While the history is archived, its copy grows in the shared stream.
      const stray = sharedLast === undefined || isFirstCommit(sharedLast);
      const alsoShared = !stray && sealOf(ownLast) !== "archive";
      return { ...own, lastSeq: lastCommitSeqOf(ownLast), at: ownLast.at, alsoShared };
    }
    if (!sharedLast) return undefined;
    return { ...shared, lastSeq: lastCommitSeqOf(sharedLast), at: sharedLast.at, alsoShared: false };
  }

  /** Yields the commits up to the last one that `find` saw. Throws if a commit cannot be read. */
  async *read(
    instanceId: string,
    found: FoundHistory,
    pageSize = 500,
    fromSeq = 1,
  ): AsyncGenerator<{ page: ReadCommit[]; anew: boolean }, void, undefined> {
    let from = fromSeq;
    while (from <= found.lastSeq) {
      const messages = await this.#bus.read(found.stream, found.subject, from, pageSize);
      const wanted = messages?.filter(({ seq }) => seq <= found.lastSeq) ?? [];
      const last = wanted.at(-1);
      if (!last) return;
      from = last.seq + 1;
      // Messages before the start of an archived copy are not part of it.
      const start = wanted.findLastIndex((message) => message.headers[headerNames.archived] !== undefined);
      const commits = wanted.slice(Math.max(0, start)).filter((message) => sealOf(message) === undefined);
      yield { page: await this.#decode(instanceId, commits), anew: start >= 0 };
    }
  }

  #decode(instanceId: string, messages: StoredMessage[]): Promise<ReadCommit[]> {
    return Promise.all(
      messages.map(async (message) => ({
        commit: await decodeCommit(this.#bus, instanceId, message),
        seq: message.seq,
        storedAt: message.at,
        bytes: bytesOf(message),
      })),
    );
  }
}

/** A commit that was too big for a message is in the object store. */
function bytesOf({ body, headers }: StoredMessage): number {
  const overflow = headers[headerNames.blob];
  return (overflow === undefined ? undefined : overflowRef(overflow)?.bytes) ?? body.length;
}
