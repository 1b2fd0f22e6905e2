/** What the gateway reads beyond the client's API: whole histories, big values, changes. */
import { type Commit, payloadsOf } from "../../schemas/index.ts";
import { type Bus, parseJson, type Stoppable, type Subjects } from "../../shared/bus/index.ts";
import { type HistoryMark, HistoryReader, type HistoryStore } from "../../shared/history/index.ts";
import type { Clock } from "../../shared/runtime/index.ts";
import { type HistoryFile, historyFile } from "../../shared/sdk/internal.ts";
import { notFound, Problem } from "./http/problem.ts";

/** Histories kept in memory; ten thousand events take some megabytes. */
const mostKept = 8;
const keptForMs = 30_000;

interface Bounded {
  commits: Commit[];
  bytes: number;
  anew: true;
  mark: HistoryMark;
}

interface Kept {
  commits: readonly Commit[];
  mark: HistoryMark;
  readAt: number;
}

interface HistoriesOptions {
  bus: Bus;
  names: Subjects;
  history: HistoryStore;
  clock: Clock;
  /** Number of shared history streams. */
  shards: number;
  /** Largest history that is read into memory. */
  maxBytes: number;
}

export class Histories {
  readonly #reader: HistoryReader;
  readonly #maxBytes: number;
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #history: HistoryStore;
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  readonly #reading = new Map<string, Promise<unknown>>();

  constructor({ bus, names, history, clock, shards, maxBytes }: HistoriesOptions) {
    this.#reader = new HistoryReader(bus, names, shards);
    this.#maxBytes = maxBytes;
    this.#clock = clock;
    this.#bus = bus;
    this.#names = names;
    this.#history = history;
  }

  /**
   * All stored commits of all executions, in order. A page that follows an instance asks after every turn:
   * the commits are cached for a while, so that a long history is not read again for each new event.
   */
  async read(instanceId: string): Promise<readonly Commit[]> {
    const before = this.#reading.get(instanceId) ?? Promise.resolve(undefined);
    // One after the other: pages that follow the same instance share what the first request reads.
    const reading = before.catch(() => undefined).then(() => this.#readOn(instanceId));
    this.#reading.set(instanceId, reading);
    try {
      return await reading;
    } finally {
      if (this.#reading.get(instanceId) === reading) this.#reading.delete(instanceId);
    }
  }

  async #readOn(instanceId: string): Promise<readonly Commit[]> {
    const kept = this.#kept.get(instanceId);
    // An id may be removed and reused meanwhile; a page that follows an instance asks more often than this.
    const known = kept && this.#clock.monotonic() - kept.readAt < keptForMs ? kept : undefined;
    const found = known
      ? await this.#history.readOn(instanceId, known.mark)
      : await this.#readBounded(instanceId);
    this.#kept.delete(instanceId);
    if (!found) throw notFound("history of instance", instanceId);
    const commits = found.anew || !known ? found.commits : [...known.commits, ...found.commits];
    if (commits.length === 0) throw notFound("history of instance", instanceId);
    this.#kept.set(instanceId, { commits, mark: found.mark, readAt: this.#clock.monotonic() });
    // The first entry of the map is the least recently requested one.
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > mostKept && oldest !== undefined) this.#kept.delete(oldest);
    return commits;
  }

  /** The history as a file, with its big values, as long as all of it is no larger than what one request may take. */
  async file(instanceId: string): Promise<HistoryFile> {
    const found = await this.#readBounded(instanceId);
    if (!found || found.commits.length === 0) throw notFound("history of instance", instanceId);
    let bytes = found.bytes;
    const values: Record<string, unknown> = {};
    for (const payload of found.commits.flatMap(({ events }) => events.flatMap(payloadsOf))) {
      if (!("blob" in payload) || payload.blob.key in values) continue;
      bytes += payload.blob.bytes;
      this.#requireRoom(instanceId, bytes);
      const blob = await this.#bus.blobs.get(payload.blob.key);
      const parsed = blob && parseJson(blob);
      if (parsed?.kind === "ok") values[payload.blob.key] = parsed.value;
    }
    return historyFile(instanceId, found.commits, values);
  }

  async #readBounded(instanceId: string): Promise<Bounded | undefined> {
    const found = await this.#reader.find(instanceId);
    if (!found) return undefined;
    const commits: Commit[] = [];
    let [bytes, lastSeq] = [0, 0];
    for await (const { page, anew } of this.#reader.read(instanceId, found)) {
      // What was read before is no part of an archived copy.
      if (anew) commits.length = bytes = 0;
      for (const one of page) {
        bytes += one.bytes;
        lastSeq = one.seq;
        commits.push(one.commit);
      }
      this.#requireRoom(instanceId, bytes);
    }
    return { commits, bytes, anew: true, mark: { stream: found.stream, lastSeq } };
  }

  #requireRoom(instanceId: string, bytes: number): void {
    if (bytes <= this.#maxBytes) return;
    throw new Problem({
      status: 413,
      code: "history_too_large",
      message: `The history of ${instanceId} is larger than the ${this.#maxBytes} bytes that one request may read`,
      hint: "`holdfast history <id> --export` reads it straight from NATS; GATEWAY_MAX_HISTORY_BYTES sets the limit.",
    });
  }

  /** A value too big for a message, by its digest. Only values of this instance: the key contains its id. */
  async blob(instanceId: string, sha256: string): Promise<unknown> {
    const bytes = await this.#bus.blobs.get(`${instanceId}/${sha256}`);
    const parsed = bytes && parseJson(bytes);
    if (parsed?.kind !== "ok") throw notFound("blob", `${instanceId}/${sha256}`);
    return parsed.value;
  }

  /**
   * Calls the listener on every change until stopped: notices report changes of the summary, the history
   * reports every turn, which need not change the summary.
   */
  async onChange(instanceId: string, listener: () => void): Promise<() => void> {
    let history: Promise<Stoppable | undefined> | undefined;
    let stopped = false;
    const followHistory = () => {
      history ??= this.#history.follow(instanceId, listener).catch(() => undefined);
      // The instance has not begun: look again at the next notice.
      void history.then((found) => {
        if (!found) history = undefined;
        else if (stopped) void found.stop();
      });
    };
    const subscription = await this.#bus.subscribe(this.#names.noticesOf(instanceId), {}, () => {
      followHistory();
      listener();
    });
    followHistory();
    await history;
    return () => {
      stopped = true;
      void subscription.stop();
      void history?.then((found) => found?.stop());
    };
  }
}
