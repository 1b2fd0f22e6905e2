import { createHash } from "node:crypto";

/** An id made from an instance's: readable where it fits into 128 characters, hashed where it does not. */
export function deriveId(instanceId: string, suffix: string): string {
  const plain = `${instanceId}-${suffix}`;
  if (plain.length <= 128) return plain;
  const digest = createHash("sha256").update(instanceId).digest("hex").slice(0, 16);
  return `${instanceId.slice(0, 128 - digest.length - suffix.length - 2)}-${digest}-${suffix}`;
}
