import type { BlobStore, StoredBlob } from "../../../shared/bus/index.ts";

/**
 * The store can only be read whole: once for many owners, and only when somebody has to be forgotten. Whoever deletes
 * reads first and makes sure afterwards that the owner is over: what came since is somebody else's and stays.
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

  /** Deletes what lay under `folder`, a path that ends with a slash, when the store was read. */
  async delete(folder: string): Promise<void> {
    for (const { key, seq } of await this.read()) {
      if (key.startsWith(folder)) await this.#blobs.delete(key, seq);
    }
  }
}

export const checkpointsOf = (sessionId: string): string => `checkpoints/${sessionId}/`;
export const payloadsOf = (instanceId: string): string => `${instanceId}/`;
