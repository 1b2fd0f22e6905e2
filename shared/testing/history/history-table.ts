/** A history as a table, for the output of a failed test. */
import type { HistoryEvent } from "../../../schemas/index.ts";

type Entry = HistoryEvent & { at: number };

/** One line per event: number, time since the start, kind and subject; `pointAt` marks one of them. */
export function historyTable(entries: readonly Entry[], pointAt?: number): string {
  const start = entries[0]?.at ?? 0;
  const rows = entries.map((entry) => [
    `${entry.id === pointAt ? "> " : ""}${entry.id}`,
    `+${((entry.at - start) / 1000).toFixed(3)}s`,
    entry.kind,
    aboutOf(entry),
  ]);
  return lines([["#", "time", "event", "about"], ...rows]);
}

/** Both lists side by side up to the first difference, and a few lines after it. */
export function firstDifference(expected: readonly string[], actual: readonly string[]): string | undefined {
  const length = Math.max(expected.length, actual.length);
  let at = 0;
  while (at < length && expected[at] === actual[at]) at++;
  if (at === length) return undefined;
  const from = Math.max(0, at - 3);
  const rows: string[][] = [["", "#", "expected", "happened"]];
  for (let i = from; i < Math.min(length, at + 3); i++)
    rows.push([i === at ? ">" : "", String(i + 1), expected[i] ?? "(nothing)", actual[i] ?? "(nothing)"]);
  return lines(rows);
}

function lines(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

const shown = ["name", "sessionId", "of", "fireAt", "input", "output", "error", "payload", "reason"] as const;

function aboutOf(entry: Entry): string {
  const parts: string[] = [];
  for (const name of shown) {
    const value: unknown = Object.entries(entry).find(([key]) => key === name)?.[1];
    if (value !== undefined) parts.push(`${name}=${short(value)}`);
  }
  return parts.join(" ");
}

function short(value: unknown): string {
  const plain: unknown = typeof value === "object" && value !== null && "json" in value ? value.json : value;
  const text = typeof plain === "string" ? plain : (JSON.stringify(plain) ?? String(plain));
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
