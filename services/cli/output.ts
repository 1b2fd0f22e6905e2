/** Data goes to stdout and nothing else does; everything said to people goes to stderr. */
export interface Streams {
  stdout: { write(text: string): unknown };
  stderr: { write(text: string): unknown; isTTY?: boolean };
}

export class Output {
  readonly json: boolean;
  readonly #streams: Streams;

  constructor(streams: Streams, json: boolean) {
    this.#streams = streams;
    this.json = json;
  }

  /** One line of JSON for programs, `people` for people. */
  data(value: unknown, people: () => string): void {
    this.#streams.stdout.write(`${this.json ? JSON.stringify(value) : people()}\n`);
  }

  /** For people only: programs have asked for data. */
  note(text: string): void {
    if (!this.json) this.#streams.stderr.write(`${text}\n`);
  }

  /** Something was done and there is nothing to show for it. */
  done(text: string): void {
    if (this.json) this.data({ ok: true }, () => "");
    else this.note(text);
  }

  get interactive(): boolean {
    return !this.json && this.#streams.stderr.isTTY === true;
  }
}

export interface Column<T> {
  title: string;
  value(row: T): string | number | undefined;
  align?: "right";
}

export function table<T>(rows: readonly T[], columns: readonly Column<T>[]): string {
  const cells = rows.map((row) => columns.map((column) => oneLine(column.value(row) ?? "")));
  const titles = columns.map((column) => column.title);
  const widths = titles.map((title, index) =>
    Math.max(title.length, ...cells.map((row) => row[index]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    columns
      .map(({ align }, index) => {
        const text = row[index] ?? "";
        return align === "right" ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0);
      })
      .join("  ")
      .trimEnd();
  return [titles, ...cells].map(line).join("\n");
}

/** Values of users may hold line breaks and escape sequences; neither may reach the terminal as such. */
export const oneLine = (value: string | number): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is to be removed
  String(value).replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ");

export function pairs(entries: readonly (readonly [string, string | number | undefined])[]): string {
  const known = entries.filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(0, ...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${oneLine(value ?? "")}`).join("\n");
}

export const clip = (text: string, max: number): string =>
  text.length > max ? `${text.slice(0, max - 1)}…` : text;

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
