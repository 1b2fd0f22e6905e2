/** Reads the histories of instances for a client. */
import type { Commit } from "../../../schemas/index.ts";
import { requireToken } from "../../bus/index.ts";
import { HistoryStore } from "../../history/index.ts";
import {
  entriesOf,
  type HistoryEntry,
  type HistoryFile,
  historyFile,
  storedValues,
} from "../replaying/history-file.ts";
import { notFound } from "../user-facing.ts";
import type { ClientParts } from "./client-options.ts";

export class HistoryReader {
  readonly #parts: ClientParts;
  #store: Promise<HistoryStore> | undefined;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  async entries(instanceId: string): Promise<HistoryEntry[]> {
    return entriesOf(await this.#commits(instanceId));
  }

  async file(instanceId: string): Promise<HistoryFile> {
    const commits = await this.#commits(instanceId);
    return historyFile(instanceId, commits, await storedValues(commits, this.#parts.payloads));
  }

  /** True if the message of the inbox is in the history: the instance may have ended because of it. */
  async received(instanceId: string, inboxSeq: number): Promise<boolean> {
    const commits = await this.#read(instanceId);
    return commits?.some(({ inbox }) => inbox.includes(inboxSeq)) ?? false;
  }

  async #commits(instanceId: string): Promise<Commit[]> {
    const commits = await this.#read(requireToken("instance id", instanceId));
    if (!commits) throw notFound(instanceId);
    return commits;
  }

  async #read(instanceId: string): Promise<Commit[] | undefined> {
    this.#store ??= this.#open().catch((error: unknown) => {
      this.#store = undefined; // The next call tries again.
      throw error;
    });
    return (await this.#store).readAll(instanceId);
  }

  /**
   * Read-only. The number of shared history streams is read from the server, so clients need no setting for
   * it.
   */
  async #open(): Promise<HistoryStore> {
    const { bus, names, runtime } = this.#parts;
    const shards = (await bus.streamNames(names.sharedHistories)).length;
    return new HistoryStore({ bus, names, layout: "shared", maxOwnStreams: 0, shards, replicas: 1, runtime });
  }
}
