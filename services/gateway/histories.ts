/** What the gateway reads beyond the client's API: whole histories, big values, changes. */
import type { Commit } from "../../schemas/index.ts";
import { type Bus, parseJson, type Stoppable, type Subjects } from "../../shared/bus/index.ts";
import type { HistoryMark, HistoryStore } from "../../shared/history/index.ts";
import type { Clock } from "../../shared/runtime/index.ts";
import { notFound } from "./http/problem.ts";

/** Histories kept in memory; ten thousand events take some megabytes. */
const mostKept = 8;
const keptForMs = 30_000;

interface Kept {
  commits: readonly Commit[];
  mark: HistoryMark;
  readAt: number;
}

export class Histories {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #history: HistoryStore;
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  readonly #reading = new Map<string, Promise<unknown>>();

  constructor(bus: Bus, names: Subjects, history: HistoryStore, clock: Clock) {
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
    const found = await this.#history.readOn(instanceId, known?.mark);
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
