/**
 * Histories of instances: append under a fence, read back, put away.
 *
 * T1 One commit is one message, stored only if the subject's last sequence is the one its writer knows. T4 follows:
 * who does not know the last sequence is `fenced`. Where a history lies is decided once, see locate.ts (HISTORY-1–HISTORY-3).
 */
import type { Commit } from "../../schemas/index.ts";
import type { Bus, Stoppable, StoredMessage } from "../bus/bus.ts";
import type { Subjects } from "../bus/subjects.ts";
import { ownHistory, topology } from "../bus/topology.ts";
import { Fault, isFault } from "../errors/index.ts";
import { type Runtime, sleep } from "../runtime/index.ts";
import { appendFenced, type FencedOutcome } from "./append-fenced.ts";
import { archiveHistory } from "./archive.ts";
import { decodeCommit, encodeCommit, overflowRef } from "./codec.ts";
import { beginsHistory, commitsOnly, executionStartOf, headers, lastCommitSeqOf } from "./headers.ts";
import { deleteOwn, type Located, locate, ownPlace, type Place, retire, sharedPlace } from "./locate.ts";
import { OwnStreamLimit } from "./own-stream-limit.ts";
import { OwnStreams } from "./own-streams.ts";

export interface HistoryStoreOptions {
  bus: Bus;
  names: Subjects;
  layout: "per-instance" | "shared";
  /** Beyond so many live streams new instances are placed in the shared ones. */
  maxOwnStreams: number;
  shards: number;
  replicas: number;
  runtime: Runtime;
}

/** Where the next commit of an instance goes, and behind what. Whoever has an old one is fenced. */
export interface Position extends Place {
  /** 0: nothing there yet. */
  readonly lastSeq: number;
  readonly executionStartSeq: number;
}

export interface LoadedHistory {
  /** Of the latest execution; signals that came before the start belong to the first. */
  commits: Commit[];
  position: Position;
}

/** What was there of an instance when somebody looked. */
export interface SeenHistory {
  readonly instanceId: string;
  readonly blobs: readonly string[];
  /** Undefined: nothing in it. */
  readonly ownLastSeq: number | undefined;
  readonly sharedLastSeq: number | undefined;
}

/** How far a reader has come. */
export interface HistoryMark {
  readonly stream: string;
  readonly lastSeq: number;
}

export interface ReadOn {
  commits: Commit[];
  /** These are all there are; otherwise they follow those read before. */
  anew: boolean;
  mark: HistoryMark;
}

export type AppendOutcome = { kind: "appended"; position: Position } | { kind: "fenced" };

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
    // Partitions do not change the number of streams; one more for the blobs.
    const others = topology(names, { partitions: 1, historyShards: shards, replicas }).length + 1;
    this.#limit = new OwnStreamLimit({
      ...{ bus, runtime, max: maxOwnStreams, others },
      anyStream: names.sharedHistoryStream(0),
    });
    this.#ownStreams = new OwnStreams({ bus, names, clock: runtime.clock });
  }

  /** Whole, up to the last commit that was acknowledged before the call (HISTORY-4): turns are decided by it. */
  async load(instanceId: string): Promise<LoadedHistory | undefined> {
    const read = await this.#read(instanceId, ({ last }) => executionStartOf(last), this.#leader);
    if (!read) return undefined;
    const { found, messages } = read;
    // Somebody may have gone on since, even into the next execution.
    const last = messages.at(-1) ?? found.last;
    const executionStartSeq = executionStartOf(last);
    const current = messages.filter((message) => message.seq >= executionStartSeq);
    const commits = await this.#decode(instanceId, current);
    const { stream, subject } = found;
    return { commits, position: { stream, subject, lastSeq: last.seq, executionStartSeq } };
  }

  /**
   * A place for an instance that has no history. Throws transient `history_exists` where it has one after all. What was
   * only signalled, and may never be started, gets no stream of its own: nobody would ever take it away.
   */
  async place(instanceId: string, { started = true } = {}): Promise<Position> {
    const { layout } = this.#options;
    const shared = this.#shared(instanceId);
    if (layout === "shared" || !started || !(await this.#limit.take())) return start(shared);
    const own = this.#own(instanceId);
    try {
      this.#ownReplicas ??= this.#replicasOfOwn();
      await this.#bus.ensureStream(ownHistory(this.#names, instanceId, await this.#ownReplicas));
    } catch (error) {
      this.#ownReplicas = undefined;
      if (!isFault(error, "transient") || error.code !== "too_many_streams") throw error;
      this.#limit.refused();
      return start(shared);
    }
    // HISTORY-2: only now, and not from a replica that may lag.
    if (await this.#bus.last(shared.stream, shared.subject, { leader: this.#leader })) {
      await retire(this.#bus, this.#options.runtime, instanceId, own);
      throw new Fault("transient", {
        code: "history_exists",
        message: `instance ${instanceId} has a history in ${shared.stream}`,
      });
    }
    return start(own);
  }

  /** The hot path: one round trip. */
  async append(
    position: Position,
    commit: Commit,
    { startsExecution }: { startsExecution: boolean },
  ): Promise<AppendOutcome> {
    const { stream, subject, lastSeq } = position;
    const encoded = encodeCommit(commit, this.#bus.maxPayloadBytes);
    // Signals before the start are part of the first execution.
    const starts = lastSeq === 0 || (startsExecution && commit.execution > 1);
    const extra: Record<string, string> = { [headers.commit]: commit.commitId };
    if (!starts) extra[headers.executionStart] = String(position.executionStartSeq);
    if (encoded.overflow) {
      extra[headers.blob] = JSON.stringify(encoded.overflow.ref);
      await this.#bus.blobs.put(encoded.overflow.ref.key, encoded.overflow.bytes);
    }
    let outcome: FencedOutcome;
    try {
      outcome = await appendFenced(this.#bus, this.#options.runtime, commit.instanceId, {
        stream,
        subject,
        expectLastSeq: lastSeq,
        headers: extra,
        body: encoded.body,
      });
    } catch (error) {
      // Archived and deleted since, or the server is closing down: whoever is still here must load again.
      if (isFault(error, "transient") && error.code === "no_stream") return fenced;
      throw error;
    }
    if (outcome.kind === "conflict") return fenced;
    if (lastSeq === 0 && (await this.#ownerElsewhere(position, commit.instanceId))) return fenced;
    const { seq } = outcome;
    const executionStartSeq = starts ? seq : position.executionStartSeq;
    return { kind: "appended", position: { stream, subject, lastSeq: seq, executionStartSeq } };
  }

  /** Every execution, oldest first. */
  async readAll(instanceId: string): Promise<Commit[] | undefined> {
    const read = await this.#read(instanceId, () => 1);
    return read && this.#decode(instanceId, read.messages);
  }

  /** What came behind the mark, and the next one. Everything where there is none or it fits no more. */
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
    // Removed and begun again under the same id, or put away: what was read before is not part of this one.
    if (known > 0 && messages.some(beginsHistory)) return this.readOn(instanceId);
    const commits = await this.#decode(instanceId, messages);
    return { commits, anew: known === 0, mark: { stream, lastSeq: messages.at(-1)?.seq ?? known } };
  }

  /** Calls back for every commit from now on. Undefined where there is no history yet. */
  async follow(instanceId: string, onCommit: () => void): Promise<Stoppable | undefined> {
    const found = await this.#locate(instanceId);
    return found && this.#bus.tail(found.stream, found.subject, { existing: false, onMessage: onCommit });
  }

  async exists(instanceId: string): Promise<boolean> {
    return (await this.#locate(instanceId)) !== undefined;
  }

  /** Moves the history of an ended instance into the shared stream. Any number may try, and die trying. */
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

  /** All there is of an instance now: what `remove` takes away, and nothing begun anew under its id since. */
  async look(instanceId: string): Promise<SeenHistory> {
    const parts = await Promise.all(
      [this.#own(instanceId), this.#shared(instanceId)].map(async (place) => {
        const messages = (await this.#bus.read(place.stream, place.subject)) ?? [];
        const last = await this.#bus.last(place.stream, place.subject, { leader: true });
        return { place, messages, lastSeq: last?.seq };
      }),
    );
    const blobs = parts.flatMap(({ messages }) =>
      messages.flatMap(({ headers: { [headers.blob]: blob } }) => {
        const ref = blob === undefined ? undefined : overflowRef(blob);
        return ref ? [ref.key] : [];
      }),
    );
    return { instanceId, blobs, ownLastSeq: parts[0]?.lastSeq, sharedLastSeq: parts[1]?.lastSeq };
  }

  /** Forgets what was seen of an instance: its stream, its subject, its blobs. */
  async remove({ instanceId, blobs, ownLastSeq, sharedLastSeq }: SeenHistory): Promise<void> {
    const shared = this.#shared(instanceId);
    // Blobs first: were the messages gone, nobody would know them after a crash.
    for (const key of blobs) await this.#bus.blobs.delete(key);
    await deleteOwn(this.#bus, this.#own(instanceId), ownLastSeq);
    if (sharedLastSeq !== undefined) await this.#bus.purge(shared.stream, shared.subject, sharedLastSeq);
  }

  /**
   * HISTORY-4. On a single server every reading is the leader's, and the direct one is the cheaper. The setting does not
   * tell: streams keep the copies they were made with, or an operator gave them.
   */
  get #leader(): boolean {
    return this.#bus.clustered();
  }

  /** As many as the shared histories have, whatever this service was told. */
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

  /** HISTORY-2: the first commit in a shared stream counts only if nobody has made an own stream before it. */
  async #ownerElsewhere({ stream }: Position, instanceId: string): Promise<boolean> {
    return stream !== this.#own(instanceId).stream && this.#ownStreams.has(instanceId);
  }

  /** Archived between the look and the reading, it is found again where it is now. */
  async #read(
    instanceId: string,
    fromSeq: (found: Located) => number,
    leader = false,
  ): Promise<{ found: Located; messages: StoredMessage[] } | undefined> {
    for (let attempt = 1; attempt <= looks; attempt++) {
      const found = await this.#locate(instanceId, leader);
      if (!found) return undefined;
      const messages = await this.#readFrom(found, fromSeq(found));
      if (messages) return { found, messages };
      await sleep(this.#options.runtime.clock, 10 * attempt);
    }
    throw incomplete(`the history of ${instanceId} moves faster than it can be read`);
  }

  /** Replicas may lag behind the last message we were shown. Undefined where the stream is gone since. */
  async #readFrom(found: Located, fromSeq: number): Promise<StoredMessage[] | undefined> {
    const wanted = lastCommitSeqOf(found.last);
    if (fromSeq > wanted) return [];
    if (wanted === found.last.seq && fromSeq === wanted) return [found.last];
    for (let attempt = 1; attempt <= looks; attempt++) {
      const all = await this.#bus.read(found.stream, found.subject, fromSeq);
      if (!all) return undefined;
      const messages = commitsOnly(all);
      if ((messages.at(-1)?.seq ?? 0) >= wanted) return messages;
      await sleep(this.#options.runtime.clock, 10 * attempt);
    }
    throw incomplete(`${found.stream} does not show message ${wanted} of ${found.subject}`);
  }

  #decode(instanceId: string, messages: StoredMessage[]): Promise<Commit[]> {
    return Promise.all(messages.map((message) => decodeCommit(this.#bus, instanceId, message)));
  }
}

/** Before a reader gives up what moves or does not show yet; whoever asked tries again. */
const looks = 20;

const incomplete = (message: string): Fault =>
  new Fault("transient", { code: "history_incomplete", message });

const start = ({ stream, subject }: Place): Position => ({
  stream,
  subject,
  lastSeq: 0,
  executionStartSeq: 0,
});
