import { sessionBlobsFolder } from "../../../schemas/index.ts";
import type { BlobStore, StoredBlob } from "../../../shared/bus/index.ts";

/**
 * The blob store can only be read whole: it is read once for many owners, and only if an owner has to be
 * forgotten. A step that deletes reads the store first and then checks that the owner has ended: blobs stored
 * since belong to another owner and stay.
 */
export class BlobFolders {
  readonly #blobs: BlobStore;
  #seen: Promise<StoredBlob[]> | undefined;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  read(): Promise<StoredBlob[]> {
    this.#seen ??= this.#blobs.list("");
    return this.#seen;
  }

  /**
   * Deletes the blobs in `folder`, a path that ends with a slash, that were there when the store was read and
   * were not stored again after `until`. What is in folders below it stays: an instance may be called
   * `checkpoints`.
   */
  async delete(folder: string, until = Number.POSITIVE_INFINITY): Promise<void> {
    for (const { key, seq, at } of await this.read()) {
      const name = key.startsWith(folder) ? key.slice(folder.length) : "/";
      if (!name.includes("/") && at <= until) await this.#blobs.delete(key, seq);
    }
  }
}

/** The folders of a session: its checkpoints, and what its code stored under names. */
export const foldersOf = (sessionId: string): string[] => [
  `checkpoints/${sessionId}/`,
  sessionBlobsFolder(sessionId),
];
export const payloadsOf = (instanceId: string): string => `${instanceId}/`;
