/** Bytes inside a message: taken out of it before it becomes JSON, put back at their place after it was read. */

type Step = string | number;

export interface Attachment {
  at: Step[];
  size: number;
}

/** The message with null in the place of its bytes, and those bytes in order. The message itself where it has none. */
export function takeBytes(message: object): {
  message: object;
  attachments: Attachment[];
  bytes: Uint8Array[];
} {
  const attachments: Attachment[] = [];
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

/** What writes itself as JSON is not looked into. */
const mayHold = (value: object): boolean => !("toJSON" in value && typeof value.toJSON === "function");

const copyOf = (value: object): Record<Step, unknown> =>
  Object.assign(Array.isArray(value) ? [] : {}, value) as Record<Step, unknown>;

/** False where a place is not there or holds something else than null: the message is not what it says it is. */
export function putBytes(message: object, attachments: readonly Attachment[], bytes: Uint8Array): boolean {
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
