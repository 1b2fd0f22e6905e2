/**
 * Saved states in the blob store. One blob per checkpoint, named by epoch and number of calls and never
 * overwritten: a reference in a history means exactly these bytes.
 */
import type { CheckpointRef } from "../../../../schemas/index.ts";
import type { BlobStore } from "../../../../shared/bus/index.ts";
import { HoldfastError } from "../../../../shared/errors/index.ts";

const folder = (sessionId: string): string => `checkpoints/${sessionId}/`;

export class Checkpoints {
  readonly #blobs: BlobStore;
  readonly #maxBytes: number;

  constructor(blobs: BlobStore, maxBytes: number) {
    this.#blobs = blobs;
    this.#maxBytes = maxBytes;
  }

  async save(sessionId: string, epoch: number, calls: number, bytes: Uint8Array): Promise<CheckpointRef> {
    if (bytes.byteLength > this.#maxBytes) {
      throw new HoldfastError({
        code: "checkpoint_too_large",
        message: `a checkpoint of ${bytes.byteLength} bytes is over the limit of ${this.#maxBytes}`,
      });
    }
    const key = `${folder(sessionId)}${epoch}-${calls}`;
    await this.#blobs.put(key, bytes);
    return { key, bytes: bytes.byteLength, epoch, calls };
  }

  async load(ref: CheckpointRef): Promise<Uint8Array> {
    const bytes = await this.#blobs.get(ref.key);
    if (bytes) return bytes;
    throw new HoldfastError({
      code: "checkpoint_missing",
      message: `checkpoint ${ref.key} is no longer in the blob store`,
    });
  }

  async remove(ref: CheckpointRef): Promise<void> {
    await this.#blobs.delete(ref.key);
  }
}
