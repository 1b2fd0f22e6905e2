/**
 * Histories of instances: append under a fence, read, archive, remove.
 *
 * T1 One commit is one message, stored only if the subject's last sequence is the one its writer knows. T4
 *    follows: a writer that does not know the last sequence is `fenced`. The place of a history is decided
 *    once, see locate.ts (HISTORY-1–HISTORY-3).
 */
import type { Commit } from "../../schemas/index.ts";
import type { Bus, Stoppable, StoredMessage, Subjects } from "../bus/index.ts";
import { headerNames, ownHistory, topology } from "../bus/index.ts";
import { Fault, isFault } from "../errors/index.ts";
import { type Runtime, sleep } from "../runtime/index.ts";
import { appendFenced, type FencedOutcome } from "./append-fenced.ts";
import { archiveHistory } from "./archive.ts";
import { decodeCommit, encodeCommit, overflowRef } from "./codec.ts";
import { beginsHistory, executionStartOf, lastCommitSeqOf, sealOf } from "./headers.ts";
import {
  deleteOwn,
  type Located,
  locate,
  ownPlace,
  type Place,
  retire,
  sharedPlace,
  writeForgottenMark,
} from "./locate.ts";
import { moveToOwn } from "./move-to-own.ts";
import { OwnStreamLimit } from "./own-stream-limit.ts";
import { OwnStreams } from "./own-streams.ts";
import { incomplete, maxReads, readLocated } from "./read-located.ts";

export interface HistoryStoreOptions {
  bus: Bus;
  names: Subjects;
  layout: "per-instance" | "shared";
  /** Beyond this many live streams, new instances are placed in the shared streams. */
  maxOwnStreams: number;
  shards: number;
  replicas: number;
  runtime: Runtime;
}

/**
 * Where the next commit of an instance goes, and after which message. A writer with an old position is
 * fenced.
 */
export interface Position extends Place {
  /** 0 if the place has no message yet. */
  readonly lastSeq: number;
  readonly executionStartSeq: number;
}

interface LoadedHistory {
  /** Commits of the latest execution; signals before the start belong to the first execution. */
  commits: Commit[];
  position: Position;
}

/** What the streams held of an instance when `look` read them. */
export interface SeenHistory {
  readonly instanceId: string;
  readonly blobs: readonly string[];
  /** Undefined if the own stream is empty or missing. */
  readonly ownLastSeq: number | undefined;
  readonly sharedLastSeq: number | undefined;
}

/** How far a reader has read. */
export interface HistoryMark {
  readonly stream: string;
  readonly lastSeq: number;
}

interface ReadOn {
  commits: Commit[];
  /** True if these are all commits; false if they follow those read before. */
  anew: boolean;
  mark: HistoryMark;
}

type AppendOutcome = { kind: "appended"; position: Position } | { kind: "fenced" };

const fenced: AppendOutcome = { kind: "fenced" };

export class HistoryStore {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #options: HistoryStoreOptions;
  readonly #limit: OwnStreamLimit;
  readonly #ownStreams: OwnStreams;
  #ownReplicas: Promise<number> | undefined;

  constructor(options: HistoryStoreOptions) {
    const { bus, names, runtime, maxOwnStreams, shards, replicas } = options;
    this.#options = options;
    this.#bus = bus;
    this.#names = names;
    // The number of partitions does not change the number of streams; add one for the blobs.
    const others = topology(names, { partitions: 1, historyShards: shards, replicas }).length + 1;
    this.#limit = new OwnStreamLimit({
      ...{ bus, runtime, max: maxOwnStreams, others },
      anyStream: names.sharedHistoryStream(0),
    });
    this.#ownStreams = new OwnStreams({ bus, names, clock: runtime.clock });
  }

  /**
   * Loads the history up to the last commit that was acknowledged before the call (HISTORY-4), because turns
   * are decided by it.
   */
  async load(instanceId: string): Promise<LoadedHistory | undefined> {
    const read = await this.#read(instanceId, ({ last }) => executionStartOf(last), this.#leader);
    if (!read) return undefined;
    const { found, messages } = read;
    // Another owner may have appended since, even into the next execution.
    const last = messages.at(-1) ?? found.last;
    const executionStartSeq = executionStartOf(last);
    const current = messages.filter((message) => message.seq >= executionStartSeq);
    const commits = await this.#decode(instanceId, current);
    const { stream, subject } = found;
    return { commits, position: { stream, subject, lastSeq: last.seq, executionStartSeq } };
  }

  /**
   * Chooses a place for an instance that has no history. Throws transient `history_exists` if it has one
   * after all. An instance that was only signalled, and may never be started, gets no stream of its own: that
   * stream would never be removed.
   */
  async place(instanceId: string, { started = true } = {}): Promise<Position> {
    const { layout } = this.#options;
    const shared = this.#shared(instanceId);
    if (layout === "shared" || !started || !(await this.#limit.take())) return start(shared);
    const own = this.#own(instanceId);
    if (!(await this.#makeOwn(instanceId))) return start(shared);
    // HISTORY-2: look only now, and not at a replica that may lag.
    if (await this.#bus.last(shared.stream, shared.subject, { leader: this.#leader })) {
      await retire(this.#bus, this.#options.runtime, instanceId, own);
      throw new Fault("transient", {
        code: "history_exists",
        message: `instance ${instanceId} has a history in ${shared.stream}`,
      });
    }
    return start(own);
  }

  /** True if an instance there may get a stream of its own later (`moveToOwn`). */
  mayMove({ stream }: Position): boolean {
    return this.#options.layout === "per-instance" && this.#names.parseOwnHistoryStream(stream) === undefined;
  }

  /**
   * Gives an instance that is in the shared stream a stream of its own. Returns undefined if it stays where
   * it is: there are too many streams, or the position is not that of the last commit (the next append is
   * fenced then).
   */
  async moveToOwn(instanceId: string, position: Position): Promise<Position | undefined> {
    const { runtime } = this.#options;
    if (!this.mayMove(position) || !(await this.#limit.take())) return undefined;
    if (!(await this.#makeOwn(instanceId))) return undefined;
    const own = this.#own(instanceId);
    const job = { bus: this.#bus, runtime, instanceId, own, shared: this.#shared(instanceId) };
    const moved = await moveToOwn(job, position.lastSeq);
    if (!moved) await retire(this.#bus, runtime, instanceId, own); // Removes the stream if it stayed empty.
    return moved && { ...own, ...moved };
  }

  /** Returns false if the server allows no more streams. */
  async #makeOwn(instanceId: string): Promise<boolean> {
    try {
      this.#ownReplicas ??= this.#replicasOfOwn();
      await this.#bus.ensureStream(ownHistory(this.#names, instanceId, await this.#ownReplicas));
      return true;
    } catch (error) {
      this.#ownReplicas = undefined;
      if (!isFault(error, "transient") || error.code !== "too_many_streams") throw error;
      this.#limit.refused();
      return false;
    }
  }

  /** The hot path: one round trip. Once the signal is aborted an unanswered append is not sent again. */
  async append(
    position: Position,
    commit: Commit,
    { startsExecution, signal }: { startsExecution: boolean; signal?: AbortSignal },
  ): Promise<AppendOutcome> {
    const { stream, subject, lastSeq } = position;
    const encoded = encodeCommit(commit, this.#bus.maxPayloadBytes);
    // Signals before the start are part of the first execution.
    const starts = lastSeq === 0 || (startsExecution && commit.execution > 1);
    const extra: Record<string, string> = { [headerNames.commit]: commit.commitId };
    if (!starts) extra[headerNames.executionStart] = String(position.executionStartSeq);
    if (encoded.overflow) {
      extra[headerNames.blob] = JSON.stringify(encoded.overflow.ref);
      await this.#bus.blobs.put(encoded.overflow.ref.key, encoded.overflow.bytes);
    }
    let outcome: FencedOutcome;
    try {
      const message = { stream, subject, expectLastSeq: lastSeq, headers: extra, body: encoded.body };
      outcome = await appendFenced(this.#bus, this.#options.runtime, commit.instanceId, message, signal);
    } catch (error) {
      // The stream was archived and deleted since, or the server is shutting down: the owner must load again.
      if (isFault(error, "transient") && error.code === "no_stream") return fenced;
      throw error;
    }
    if (outcome.kind === "conflict") return fenced;
    if (lastSeq === 0 && (await this.#ownerElsewhere(position, commit.instanceId))) return fenced;
    const { seq } = outcome;
    const executionStartSeq = starts ? seq : position.executionStartSeq;
    return { kind: "appended", position: { stream, subject, lastSeq: seq, executionStartSeq } };
  }

  /** All executions, oldest first. */
  async readAll(instanceId: string): Promise<Commit[] | undefined> {
    const read = await this.#read(instanceId, () => 1);
    return read && this.#decode(instanceId, read.messages);
  }

  /**
   * Returns the commits after the mark, and the next mark. Returns all commits if there is no mark or it no
   * longer fits.
   */
  async readOn(instanceId: string, mark?: HistoryMark): Promise<ReadOn | undefined> {
    const knownOf = ({ stream, last }: Located) =>
      mark?.stream === stream && mark.lastSeq <= lastCommitSeqOf(last) ? mark.lastSeq : 0;
    const read = await this.#read(instanceId, (found) => knownOf(found) + 1);
    if (!read) return undefined;
    const { found, messages } = read;
    const { stream } = found;
    const known = knownOf(found);
    if (known > 0 && messages.length === 0)
      return { commits: [], anew: false, mark: { stream, lastSeq: known } };
    // The history was removed and begun again under the same id, or archived: commits read before are not
    // part of it.
    if (known > 0 && messages.some(beginsHistory)) return this.readOn(instanceId);
    const commits = await this.#decode(instanceId, messages);
    return { commits, anew: known === 0, mark: { stream, lastSeq: messages.at(-1)?.seq ?? known } };
  }

  /** Calls back for every commit from now on. Returns undefined if there is no history yet. */
  async follow(instanceId: string, onCommit: () => void): Promise<Stoppable | undefined> {
    const found = await this.#locate(instanceId);
    if (!found) return undefined;
    let next: Promise<Stoppable | undefined> | undefined;
    const tail = await this.#bus.tail(found.stream, found.subject, {
      existing: false,
      onMessage: (message) => {
        // The history continues in the instance's own stream (HISTORY-5).
        if (sealOf(message) === "own")
          next ??= this.follow(instanceId, onCommit)
            .catch(() => undefined) // the reader asks again by itself
            .finally(onCommit);
        onCommit();
      },
    });
    return {
      stop: async () => {
        await tail.stop();
        await (await next)?.stop();
      },
    };
  }

  /** True if nothing was appended after this position (HISTORY-4). */
  async isLast({ stream, subject, lastSeq }: Position): Promise<boolean> {
    const last = await this.#bus.last(stream, subject, { leader: this.#leader });
    return (last?.seq ?? 0) === lastSeq;
  }

  async exists(instanceId: string): Promise<boolean> {
    return (await this.#locate(instanceId)) !== undefined;
  }

  /**
   * Moves the history of an ended instance into the shared stream. Several processes may try at once, and may
   * die at any point.
   */
  async archive(instanceId: string): Promise<void> {
    const { runtime } = this.#options;
    const moved = await archiveHistory({
      bus: this.#bus,
      runtime,
      instanceId,
      own: this.#own(instanceId),
      shared: this.#shared(instanceId),
    });
    if (moved) runtime.announce({ kind: "history.archived", instanceId });
  }

  /**
   * Reads all that is stored of an instance now. `remove` deletes exactly this, and nothing begun anew under
   * the id since.
   */
  async look(instanceId: string): Promise<SeenHistory> {
    const parts = await Promise.all(
      [this.#own(instanceId), this.#shared(instanceId)].map(async (place) => {
        const messages = (await this.#bus.read(place.stream, place.subject)) ?? [];
        const last = await this.#bus.last(place.stream, place.subject, { leader: true });
        return { place, messages, lastSeq: last?.seq };
      }),
    );
    const blobs = parts.flatMap(({ messages }) =>
      messages.flatMap(({ headers: { [headerNames.blob]: blob } }) => {
        const ref = blob === undefined ? undefined : overflowRef(blob);
        return ref ? [ref.key] : [];
      }),
    );
    return { instanceId, blobs, ownLastSeq: parts[0]?.lastSeq, sharedLastSeq: parts[1]?.lastSeq };
  }

  /**
   * Forgets an id that was only signalled, as `look` saw it. Returns false if it was started or signalled
   * again since: the fence lets only one of the two happen. A process that dies between the two steps leaves
   * a mark with the same meaning.
   */
  async forgetUnstarted(seen: SeenHistory): Promise<boolean> {
    const { instanceId, ownLastSeq, sharedLastSeq } = seen;
    if (ownLastSeq !== undefined || sharedLastSeq === undefined) return false;
    const shared = this.#shared(instanceId);
    const last = await this.#bus.last(shared.stream, shared.subject, { leader: true });
    if (last?.seq !== sharedLastSeq) return false;
    const { runtime } = this.#options;
    const mark = await writeForgottenMark(this.#bus, runtime, instanceId, shared, last);
    if (mark.kind === "conflict") return false;
    await this.remove({ ...seen, sharedLastSeq: mark.seq });
    return true;
  }

  /** Deletes what `look` saw of an instance: its stream, its subject, its blobs. */
  async remove({ instanceId, blobs, ownLastSeq, sharedLastSeq }: SeenHistory): Promise<void> {
    const shared = this.#shared(instanceId);
    // Blobs first: after a crash their keys could not be found without the messages.
    for (const key of blobs) await this.#bus.blobs.delete(key);
    // The own stream last: while it is there, it is the whole history.
    if (sharedLastSeq !== undefined) await this.#bus.purge(shared.stream, shared.subject, sharedLastSeq);
    await deleteOwn(this.#bus, this.#own(instanceId), ownLastSeq);
  }

  /**
   * HISTORY-4. On a single server every read is answered by the leader, and a direct read is cheaper. The number of
   * replicas in the settings does not decide: streams keep the replicas they have.
   */
  get #leader(): boolean {
    return this.#bus.clustered();
  }

  /** At least as many replicas as the shared histories have, even if this service's setting is lower. */
  async #replicasOfOwn(): Promise<number> {
    const { replicas } = this.#options;
    if (!this.#bus.clustered()) return replicas;
    const shared = await this.#bus.streamInfo(this.#names.sharedHistoryStream(0));
    return Math.max(replicas, shared?.replicas ?? 1);
  }

  #own = (instanceId: string): Place => ownPlace(this.#names, instanceId);
  #shared = (instanceId: string): Place => sharedPlace(this.#names, instanceId, this.#options.shards);

  #locate(instanceId: string, leader = false): Promise<Located | undefined> {
    const places = { own: this.#own(instanceId), shared: this.#shared(instanceId) };
    return locate(this.#bus, this.#options.runtime, instanceId, { ...places, leader });
  }

  /** HISTORY-2: the first commit in a shared stream counts only if no own stream was made before it. */
  async #ownerElsewhere({ stream }: Position, instanceId: string): Promise<boolean> {
    return stream !== this.#own(instanceId).stream && this.#ownStreams.has(instanceId);
  }

  /** A history that is archived between locating and reading is located again. */
  async #read(
    instanceId: string,
    fromSeq: (found: Located) => number,
    leader = false,
  ): Promise<{ found: Located; messages: StoredMessage[] } | undefined> {
    for (let attempt = 1; attempt <= maxReads; attempt++) {
      const found = await this.#locate(instanceId, leader);
      if (!found) return undefined;
      const messages = await readLocated(this.#bus, this.#options.runtime.clock, found, fromSeq(found));
      if (messages) return { found, messages };
      await sleep(this.#options.runtime.clock, 10 * attempt);
    }
    throw incomplete(`the history of ${instanceId} moves faster than it can be read`);
  }

  #decode(instanceId: string, messages: StoredMessage[]): Promise<Commit[]> {
    return Promise.all(messages.map((message) => decodeCommit(this.#bus, instanceId, message)));
  }
}

const start = ({ stream, subject }: Place): Position => ({
  stream,
  subject,
  lastSeq: 0,
  executionStartSeq: 0,
});
