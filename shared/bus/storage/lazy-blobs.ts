/**
 * A blob store that is loaded at its first use: lease threads never use it and would load the schema library
 * for it.
 */
import type { BlobStore, StoredBlob } from "../bus.ts";

export class LazyBlobs implements BlobStore {
  readonly #load: () => Promise<BlobStore>;
  #loaded: Promise<BlobStore> | undefined;

  constructor(load: () => Promise<BlobStore>) {
    this.#load = load;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    return (await this.#blobs).put(key, bytes);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return (await this.#blobs).get(key);
  }

  async touch(key: string): Promise<boolean> {
    return (await this.#blobs).touch(key);
  }

  async delete(key: string, seenSeq?: number): Promise<boolean> {
    return (await this.#blobs).delete(key, seenSeq);
  }

  async list(prefix: string): Promise<StoredBlob[]> {
    return (await this.#blobs).list(prefix);
  }

  get #blobs(): Promise<BlobStore> {
    this.#loaded ??= this.#load();
    return this.#loaded;
  }
}
