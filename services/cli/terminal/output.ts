/** Only data goes to stdout; every message for people goes to stderr. */
import { type Paint, plain } from "./paint.ts";

export interface Sink {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
  rows?: number;
}

export interface Streams {
  stdout: Sink;
  stderr: Sink;
  /** Undefined: no user can be asked. */
  stdin?: NodeJS.ReadableStream & { isTTY?: boolean };
}

/** `json`: one line. `jsonl`: one line per item of a list or of a running output. */
export type Format = "text" | "json" | "jsonl";

interface OutputOptions {
  paint?: Paint;
  verbose?: boolean;
}

export class Output {
  readonly format: Format;
  readonly paint: Paint;
  readonly #streams: Streams;
  readonly #verbose: boolean;

  constructor(streams: Streams, format: Format | boolean, options: OutputOptions = {}) {
    this.#streams = streams;
    this.format = typeof format === "string" ? format : format ? "json" : "text";
    this.paint = options.paint ?? plain;
    this.#verbose = options.verbose ?? false;
  }

  /** True if the output is for programs. */
  get json(): boolean {
    return this.format !== "text";
  }

  get stdout(): Sink {
    return this.#streams.stdout;
  }

  /** Prints one line of JSON for programs, the text of `people` for people. */
  data(value: unknown, people: () => string): void {
    this.#streams.stdout.write(`${this.json ? JSON.stringify(value) : people()}\n`);
  }

  /** Prints a list as one line of JSON, one line per item, or text. */
  list(items: readonly unknown[], people: () => string): void {
    if (this.format !== "jsonl") return this.data(items, people);
    for (const item of items) this.data(item, () => "");
  }

  /** Printed for people only: programs have asked for data. */
  note(text: string): void {
    if (!this.json) this.#streams.stderr.write(`${text}\n`);
  }

  /** Printed with --verbose. */
  detail(text: string): void {
    if (this.#verbose) this.#streams.stderr.write(`${text}\n`);
  }

  /** Reports an action without output. */
  done(text: string): void {
    if (this.json) this.data({ ok: true }, () => "");
    else this.note(text);
  }

  /** Shows one line on a terminal, updated in place. Returns a function that erases it. */
  progress(text: () => string): () => void {
    const { stderr } = this.#streams;
    if (this.json || stderr.isTTY !== true) return () => undefined;
    const draw = () => stderr.write(`\r\u001b[K${clip(text(), (stderr.columns ?? 80) - 1)}`);
    const timer = setInterval(draw, 250);
    timer.unref();
    return () => {
      clearInterval(timer);
      stderr.write("\r\u001b[K");
    };
  }
}

export const clip = (text: string, max: number): string =>
  text.length > max ? `${text.slice(0, Math.max(0, max - 1))}…` : text;
