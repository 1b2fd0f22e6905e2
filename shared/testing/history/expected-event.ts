/** Events as a test expects them: by kind, or with some of their fields. */
import type { HistoryEvent } from "../../../schemas/index.ts";
import { firstDifference } from "./history-table.ts";

/**
 * The kind of an event, or an object with its kind and the other fields to compare. `input`, `output` and
 * `payload` are plain values; parts of objects are enough.
 */
export type ExpectedEvent = HistoryEvent["kind"] | { kind: HistoryEvent["kind"]; [field: string]: unknown };

type Entry = HistoryEvent & { at: number };

const kindOf = (event: ExpectedEvent): string => (typeof event === "string" ? event : event.kind);

/** Compares only events of the kinds that are named. Undefined if they agree. */
export function historyDifference(
  expected: readonly ExpectedEvent[],
  entries: readonly Entry[],
): string | undefined {
  const named = new Set<string>(expected.map(kindOf));
  const happened = entries.filter(({ kind }) => named.has(kind));
  return difference(expected, happened);
}

/** Compares all events. Undefined if they agree. */
export function difference(
  expected: readonly ExpectedEvent[],
  happened: readonly Entry[],
): string | undefined {
  const wanted = expected.map(shown);
  const got = happened.map((entry, index) => {
    const want = expected[index];
    return want !== undefined && agrees(want, entry) ? shown(want) : shownLike(entry, want);
  });
  return firstDifference(wanted, got);
}

const agrees = (expected: ExpectedEvent, entry: Entry): boolean =>
  typeof expected === "string" ? expected === entry.kind : contains(plainOf(entry), expected);

function contains(actual: unknown, expected: unknown): boolean {
  if (typeof expected !== "object" || expected === null) return Object.is(actual, expected);
  if (typeof actual !== "object" || actual === null) return false;
  if (Array.isArray(expected) && (!Array.isArray(actual) || actual.length !== expected.length)) return false;
  const of = new Map<string, unknown>(Object.entries(actual));
  return Object.entries(expected).every(([key, value]) => contains(of.get(key), value));
}

/** The event's fields, with values unwrapped from their stored envelope. */
function plainOf(entry: Entry): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(entry).map(([key, value]): [string, unknown] => [
      key,
      typeof value === "object" && value !== null && "json" in value ? value.json : value,
    ]),
  );
}

const shown = (expected: ExpectedEvent): string =>
  typeof expected === "string" ? expected : `${expected.kind} ${fields(expected)}`.trim();

/** The event with the fields that the expectation names, so that the difference is visible. */
function shownLike(entry: Entry, expected: ExpectedEvent | undefined): string {
  if (expected === undefined || typeof expected === "string") return entry.kind;
  const plain = plainOf(entry);
  const compared = Object.fromEntries(Object.keys(expected).map((key) => [key, plain[key]]));
  return `${entry.kind} ${fields(compared)}`.trim();
}

const fields = (of: Record<string, unknown>): string =>
  Object.entries(of)
    .filter(([key]) => key !== "kind")
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(" ");
