/** Checks VALUE-2: every value that a history refers to exists. */
import { BlobRef, type Commit, type HistoryEvent } from "../../schemas/index.ts";
import type { Bus } from "../bus/index.ts";
import { isFault } from "../errors/index.ts";
import type { OnViolation } from "./report.ts";

/** Blob references anywhere in an event, except inside users' own values. */
export function blobsIn(events: Commit["events"]): BlobRef[] {
  const found: BlobRef[] = [];
  const look = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) look(item);
    if (typeof value !== "object" || value === null) return;
    if ("blob" in value) {
      const ref = BlobRef.safeParse(value.blob);
      if (ref.success) return void found.push(ref.data);
    }
    for (const [key, part] of Object.entries(value)) if (key !== "json" && key !== "details") look(part);
  };
  for (const event of events) look(event satisfies HistoryEvent);
  return found;
}

/** Reads each blob and compares it with the length and digest that its writer recorded. */
export async function checkBlobs(
  bus: Bus,
  refs: Iterable<BlobRef>,
  onViolation: OnViolation,
): Promise<number> {
  let read = 0;
  for (const { key, bytes } of refs) {
    read++;
    try {
      const content = await bus.blobs.get(key);
      if (content === undefined)
        onViolation("VALUE-2", `blob ${key} (${bytes} bytes) is not in the object store`);
      else if (content.length !== bytes)
        onViolation("VALUE-2", `blob ${key} has ${content.length} bytes, not ${bytes}`);
    } catch (error) {
      if (!isFault(error) || error.code !== "blob_damaged") throw error;
      onViolation("VALUE-2", error.message);
    }
  }
  return read;
}
