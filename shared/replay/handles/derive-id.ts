import { createHash } from "node:crypto";

/**
 * The id of the n-th thing an execution made. Where the execution is named it stands behind the ordinal: "a" in its
 * second life and an instance named "a-2" must not make the same id.
 */
export function deriveId(instanceId: string, execution: number, ordinal: string): string {
  const suffix = execution === 1 ? ordinal : `${ordinal}-e${execution}`;
  const plain = `${instanceId}-${suffix}`;
  if (plain.length <= 128) return plain;
  // Readable where it fits into 128 characters, hashed where it does not.
  const digest = createHash("sha256").update(instanceId).digest("hex").slice(0, 16);
  return `${instanceId.slice(0, 128 - digest.length - suffix.length - 2)}-${digest}-${suffix}`;
}

const derived = /-[a-z]\d+(?:-e(\d+))?$/;

/** Whether any execution of the instance makes this id for that ordinal. */
export function isDerivedId(id: string, instanceId: string, ordinal: string): boolean {
  const match = derived.exec(id);
  return match !== null && deriveId(instanceId, Number(match[1] ?? 1), ordinal) === id;
}
