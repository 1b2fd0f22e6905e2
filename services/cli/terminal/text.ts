/** Tables, pairs, times and values as text for people. Pure. */
import { clip } from "./output.ts";
import { type Paint, plain, type Style } from "./paint.ts";

export interface Column<T> {
  title: string;
  value(row: T): string | number | undefined;
  align?: "right";
  style?(row: T): Style | undefined;
}

export function table<T>(rows: readonly T[], columns: readonly Column<T>[], paint: Paint = plain): string {
  const cells = rows.map((row) => columns.map((column) => oneLine(column.value(row) ?? "")));
  const titles = columns.map((column) => column.title);
  const widths = titles.map((title, index) =>
    Math.max(title.length, ...cells.map((row) => row[index]?.length ?? 0)),
  );
  const line = (texts: readonly string[], styleOf: (index: number) => Style | undefined) => {
    const last = texts.findLastIndex((text) => text !== "");
    return texts
      .slice(0, last + 1)
      .map((text, index) => {
        const room = widths[index] ?? 0;
        const padded =
          columns[index]?.align === "right" ? text.padStart(room) : index === last ? text : text.padEnd(room);
        return paint(styleOf(index), padded);
      })
      .join("  ");
  };
  return [
    line(titles, () => "dim"),
    ...cells.map((texts, at) => {
      const row = rows[at];
      return line(texts, (index) => (row === undefined ? undefined : columns[index]?.style?.(row)));
    }),
  ].join("\n");
}

export function pairs(
  entries: readonly (readonly [string, string | number | undefined])[],
  paint: Paint = plain,
): string {
  const known = entries.filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(0, ...known.map(([name]) => name.length));
  return known
    .map(([name, value]) => `${paint("dim", name.padEnd(width))}  ${oneLine(value ?? "")}`)
    .join("\n");
}

/** Users' values may contain line breaks and escape sequences, which must not reach the terminal. */
export const oneLine = (value: string | number): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is to be removed
  String(value).replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ");

export const brief = (value: unknown, max = 100): string =>
  value === undefined ? "" : clip(JSON.stringify(value) ?? "", max);

export const time = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString().replace("T", " ").replace("Z", "");

export function span(ms: number | undefined): string | undefined {
  if (ms === undefined) return undefined;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${(ms / 60_000).toFixed(1)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

export const megabytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`;
