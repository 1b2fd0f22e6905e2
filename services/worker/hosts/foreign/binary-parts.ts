/** Bytes inside a message: taken out before the message becomes JSON, put back in place after it was read. */

type Step = string | number;

interface BinaryPart {
  at: Step[];
  size: number;
}

/**
 * The message with null in place of its bytes, and those bytes in order. A message without bytes is returned
 * unchanged.
 */
export function extractBytes(message: object): {
  message: object;
  attachments: BinaryPart[];
  bytes: Uint8Array[];
} {
  const attachments: BinaryPart[] = [];
  const bytes: Uint8Array[] = [];
  const take = (value: unknown, at: readonly Step[]): unknown => {
    if (value instanceof Uint8Array) {
      attachments.push({ at: [...at], size: value.byteLength });
      bytes.push(value);
      return null;
    }
    if (typeof value !== "object" || value === null || !mayHold(value)) return value;
    let copy: Record<Step, unknown> | undefined;
    for (const [key, inner] of Object.entries(value)) {
      if (typeof inner !== "object" || inner === null) continue;
      const step = Array.isArray(value) ? Number(key) : key;
      const taken = take(inner, [...at, step]);
      if (taken === inner) continue;
      copy ??= copyOf(value);
      copy[step] = taken;
    }
    return copy ?? value;
  };
  const taken = take(message, []);
  return { message: typeof taken === "object" && taken !== null ? taken : message, attachments, bytes };
}

/** An object with its own `toJSON` is not searched for bytes. */
const mayHold = (value: object): boolean => !("toJSON" in value && typeof value.toJSON === "function");

const copyOf = (value: object): Record<Step, unknown> =>
  Object.assign(Array.isArray(value) ? [] : {}, value) as Record<Step, unknown>;

/**
 * Returns false if a place does not exist or holds a value other than null: the message contradicts itself.
 */
export function insertBytes(message: object, attachments: readonly BinaryPart[], bytes: Uint8Array): boolean {
  let from = 0;
  for (const { at, size } of attachments) {
    const last = at.at(-1);
    const holder = last === undefined ? undefined : find(message, at.slice(0, -1));
    if (last === undefined || holder === undefined || !Object.hasOwn(holder, last)) return false;
    if (holder[last] !== null) return false;
    holder[last] = bytes.subarray(from, from + size);
    from += size;
  }
  return true;
}

function find(value: object, way: readonly Step[]): Record<Step, unknown> | undefined {
  let here = value as Record<Step, unknown>;
  for (const step of way) {
    const next = Object.hasOwn(here, step) ? here[step] : undefined;
    if (typeof next !== "object" || next === null) return undefined;
    here = next as Record<Step, unknown>;
  }
  return here;
}
