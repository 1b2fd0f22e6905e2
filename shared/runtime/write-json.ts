/**
 * Writes users' values as JSON text. One rule everywhere: a value that JSON cannot express is refused with
 * its path, not left out. (`undefined` is left out, as everywhere.)
 */
import { HoldfastError, maxValueDepth, messageOf } from "../errors/index.ts";

interface WriteOptions {
  /** True writes maps and the like as `{}`, as versions before rule 3 did (`currentRules`). */
  emptiesObjects?: boolean;
}

export function writeJson(value: unknown, { emptiesObjects = false }: WriteOptions = {}): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw notSerialisable(whyRefused(value, cause), cause);
  }
  if (text === undefined) throw notSerialisable(`a ${typeof value} has no JSON form`);
  if (typeof value === "object") refuse(find(value, emptiesObjects ? isDroppedByJson : isLostInJson));
  return text;
}

/** Refuses what JSON does not give back as it was: also dates, instances of classes, NaN, gaps in lists. */
export function requireExactJson(value: unknown): void {
  writeJson(value);
  refuse(find(value, isChangedByJson));
}

function refuse(found: Found | undefined): void {
  const why = describeFound(found);
  if (why !== undefined) throw notSerialisable(why);
}

export const notSerialisable = (why: string, cause?: unknown): HoldfastError =>
  new HoldfastError({
    code: "not_serialisable",
    message: `the value cannot be turned into JSON: ${why}`,
    ...(cause === undefined ? {} : { cause }),
  });

type Wanted = (value: unknown, inList: boolean) => boolean;

/** JSON leaves these out, or writes null. */
const isDroppedByJson: Wanted = (value) => typeof value === "function" || typeof value === "symbol";

const isLostInJson: Wanted = (value, inList) => isDroppedByJson(value, inList) || isEmptiedByJson(value);

/** JSON writes these as `{}`, whatever they hold. */
const emptied = new Set(
  ["Map", "Set", "WeakMap", "WeakSet", "WeakRef", "Promise", "RegExp", "ArrayBuffer", "DataView"].map(
    (name) => `[object ${name}]`,
  ),
);

function isEmptiedByJson(value: unknown): boolean {
  if (typeof value !== "object" || value === null || isPlain(value) || hasToJson(value)) return false;
  return emptied.has(Object.prototype.toString.call(value));
}

function isChangedByJson(value: unknown, inList: boolean): boolean {
  if (value === undefined) return inList;
  if (typeof value === "number") return !Number.isFinite(value);
  return typeof value === "object" && value !== null && !isPlain(value);
}

/** Also of objects and lists that another context of this process made. */
function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

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
  return `${path || "it"} is ${nameOf(found.value)}`;
}

function nameOf(value: unknown): string {
  if (value === undefined || typeof value === "number") return String(value);
  const name = typeof value === "object" ? value?.constructor.name : typeof value;
  return /^[aeiou]/i.test(name ?? "") ? `an ${name}` : `a ${name || "object"}`;
}

/**
 * The path is built on the way back: if nothing is found, nothing is allocated. Objects with their own
 * `toJSON` are not searched. Adds about a tenth to writing and reading a value of many small parts, nothing
 * to long texts.
 */
function find(value: unknown, wanted: Wanted, depth = 0, inList = false): Found | undefined {
  if (wanted(value, inList)) return { value, path: [] };
  // Deeper values are refused for their depth, and cycles for being cycles.
  if (typeof value !== "object" || value === null || depth > maxValueDepth) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      if (typeof item === "string" || Number.isFinite(item)) continue; // long arrays mostly hold these
      const found = find(item, wanted, depth + 1, true);
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
