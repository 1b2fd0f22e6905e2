import { createHash } from "node:crypto";

/**
 * The id of the n-th thing that an execution made. From the second execution on, the execution's number
 * follows the ordinal: "a" in its second execution and an instance named "a-2" must not make the same id.
 */
export function deriveId(instanceId: string, execution: number, ordinal: string): string {
  const suffix = execution === 1 ? ordinal : `${ordinal}-e${execution}`;
  const plain = `${instanceId}-${suffix}`;
  if (plain.length <= 128) return plain;
  // Readable if it fits into 128 characters, hashed if it does not.
  const digest = createHash("sha256").update(instanceId).digest("hex").slice(0, 16);
  return `${instanceId.slice(0, 128 - digest.length - suffix.length - 2)}-${digest}-${suffix}`;
}

const derived = /-[a-z]\d+(?:-e(\d+))?$/;

/** True if some execution of the instance makes this id for that ordinal. */
export function isDerivedId(id: string, instanceId: string, ordinal: string): boolean {
  const match = derived.exec(id);
  return match !== null && deriveId(instanceId, Number(match[1] ?? 1), ordinal) === id;
}
