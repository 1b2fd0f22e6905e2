/** What the gateway reads beside what the client shows: whole histories, big values, changes. */
import type { Commit } from "../../schemas/index.ts";
import { type Bus, parseJson, type Subjects } from "../../shared/bus/index.ts";
import type { HistoryStore } from "../../shared/history/index.ts";
import { notFound } from "./http/problem.ts";

export class Histories {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #history: HistoryStore;

  constructor(bus: Bus, names: Subjects, history: HistoryStore) {
    this.#bus = bus;
    this.#names = names;
    this.#history = history;
  }

  /** All commits of all executions still stored, in order. */
  async read(instanceId: string): Promise<Commit[]> {
    const commits = await this.#history.readAll(instanceId);
    if (!commits || commits.length === 0) throw notFound("history of instance", instanceId);
    return commits;
  }

  /** A value too big for a message, by its digest. Only its own instance's: the key says whose it is. */
  async blob(instanceId: string, sha256: string): Promise<unknown> {
    const bytes = await this.#bus.blobs.get(`${instanceId}/${sha256}`);
    const parsed = bytes && parseJson(bytes);
    if (parsed?.kind !== "ok") throw notFound("blob", `${instanceId}/${sha256}`);
    return parsed.value;
  }

  /** Calls back on every change until stopped. */
  async onChange(instanceId: string, listener: () => void): Promise<() => void> {
    const subscription = await this.#bus.subscribe(this.#names.noticesOf(instanceId), {}, listener);
    return () => void subscription.stop();
  }
}
