/**
 * Writes users' values as JSON text. One rule everywhere: a value that JSON cannot express is refused with
 * its path, not left out. (`undefined` is left out, as everywhere.)
 */
import { HoldfastError, maxValueDepth, messageOf } from "../errors/index.ts";

export function writeJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw notSerialisable(whyRefused(value, cause), cause);
  }
  if (text === undefined) throw notSerialisable(`a ${typeof value} has no JSON form`);
  const dropped = typeof value === "object" ? firstDropped(value) : undefined;
  if (dropped !== undefined) throw notSerialisable(dropped);
  return text;
}

/** The first value inside that JSON would silently leave out or turn into null. */
function firstDropped(value: unknown): string | undefined {
  return describeFound(find(value, isDroppedByJson));
}

export const notSerialisable = (why: string, cause?: unknown): HoldfastError =>
  new HoldfastError({
    code: "not_serialisable",
    message: `the value cannot be turned into JSON: ${why}`,
    ...(cause === undefined ? {} : { cause }),
  });

const isDroppedByJson = (value: unknown): boolean => typeof value === "function" || typeof value === "symbol";

const hasToJson = (value: object): boolean => "toJSON" in value && typeof value.toJSON === "function";

/**
 * Says where a value cannot be written: JSON's own error names the place of a cycle, but not that of a
 * bigint.
 */
function whyRefused(value: unknown, cause: unknown): string {
  const why = messageOf(cause);
  if (!(cause instanceof TypeError)) return why;
  const seen = new Set<unknown>();
  const isBigint = (inner: unknown) => {
    if (typeof inner === "object" && inner !== null) {
      if (seen.has(inner)) throw cause; // a cycle: the search would not end
      seen.add(inner);
    }
    return typeof inner === "bigint";
  };
  try {
    return describeFound(find(value, isBigint)) ?? why;
  } catch {
    return why; // The search failed too: report JSON's own error.
  }
}

interface Found {
  readonly value: unknown;
  /** Path segments from the inside out. */
  readonly path: string[];
}

function describeFound(found: Found | undefined): string | undefined {
  if (!found) return undefined;
  const path = found.path.reverse().join("").replace(/^\./, "");
  return `${path || "it"} is a ${typeof found.value}`;
}

/**
 * The path is built on the way back: if nothing is found, nothing is allocated. Objects with their own
 * `toJSON` are not searched. Adds about a tenth to writing and reading a value of many small parts, nothing
 * to long texts.
 */
function find(value: unknown, wanted: (value: unknown) => boolean, depth = 0): Found | undefined {
  if (wanted(value)) return { value, path: [] };
  // Deeper values are refused for their depth, and cycles for being cycles.
  if (typeof value !== "object" || value === null || depth > maxValueDepth) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      if (typeof item === "number" || typeof item === "string") continue; // long arrays mostly hold these
      const found = find(item, wanted, depth + 1);
      if (found) return inside(found, `[${i}]`);
    }
    return undefined;
  }
  if (hasToJson(value)) return undefined;
  for (const key of Object.keys(value)) {
    const found = find((value as Record<string, unknown>)[key], wanted, depth + 1);
    if (found) return inside(found, `.${key}`);
  }
  return undefined;
}

function inside(found: Found, step: string): Found {
  found.path.push(step);
  return found;
}
