import type { BlobStore } from "../../../shared/bus/index.ts";

/** The store can only be read whole: once for many owners, and only when somebody has to be forgotten. */
export class BlobFolders {
  readonly #blobs: BlobStore;
  #keys: Promise<string[]> | undefined;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /** Deletes what lies under `folder`, a path that ends with a slash. */
  async delete(folder: string): Promise<void> {
    this.#keys ??= this.#blobs.keys("");
    for (const key of await this.#keys) if (key.startsWith(folder)) await this.#blobs.delete(key);
  }
}

export const checkpointsOf = (sessionId: string): string => `checkpoints/${sessionId}/`;
export const payloadsOf = (instanceId: string): string => `${instanceId}/`;
