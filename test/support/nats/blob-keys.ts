import type { BlobStore } from "../../../shared/bus/bus.ts";

/** Keys of the blobs under a prefix. */
export const blobKeys = async (blobs: BlobStore, prefix: string): Promise<string[]> =>
  (await blobs.list(prefix)).map(({ key }) => key);
