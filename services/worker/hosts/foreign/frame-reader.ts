/**
 * Turns bytes from a host into messages: one line of JSON each, followed by the attachments it announces. A
 * message that is too long is skipped to its end, so that the next one can be read. A line that is no message
 * is handed over unchanged.
 */
import { Attachments } from "../../../../schemas/index.ts";
import { insertBytes } from "./binary-parts.ts";

interface FrameListener {
  message(message: object): void;
  /** A message beyond the limit, which was skipped. `head` is its beginning. */
  tooLong(head: string, bytes: number): void;
  /** A line that does not follow the protocol. Nothing is read after it. */
  breach(line: string): void;
}

type Reading =
  | { kind: "line"; parts: Buffer[]; size: number }
  | { kind: "skip-line"; head: string; size: number }
  | { kind: "bytes"; message: object; attachments: NonNullable<Attached>; parts: Buffer[]; missing: number }
  | { kind: "skip-bytes"; missing: number }
  | { kind: "over" };

type Attached = ReturnType<typeof Attachments.parse>;

const newline = 0x0a;
const headBytes = 400;

export class FrameReader {
  readonly #limit: number;
  readonly #listener: FrameListener;
  #reading: Reading = emptyLine();

  constructor(limitBytes: number, listener: FrameListener) {
    this.#limit = limitBytes;
    this.#listener = listener;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0 && this.#reading.kind !== "over") rest = this.#consume(this.#reading, rest);
  }

  /** The stream is over: the rest is no whole message. */
  end(): void {
    const { kind } = this.#reading;
    if (kind !== "line") return;
    const text = Buffer.concat(this.#reading.parts).toString();
    this.#reading = { kind: "over" };
    if (text.trim() !== "") this.#listener.breach(text.slice(0, headBytes));
  }

  /** Returns the rest of the chunk. */
  #consume(reading: Exclude<Reading, { kind: "over" }>, chunk: Buffer): Buffer {
    switch (reading.kind) {
      case "line": {
        const end = chunk.indexOf(newline);
        const part = end < 0 ? chunk : chunk.subarray(0, end);
        reading.parts.push(part);
        reading.size += part.length;
        if (reading.size > this.#limit) {
          const head = Buffer.concat(reading.parts).toString("utf8", 0, headBytes);
          this.#reading = { kind: "skip-line", head, size: reading.size };
          if (end >= 0) this.#skipped(this.#reading);
        } else if (end >= 0) this.#line(reading.parts);
        return end < 0 ? nothing : chunk.subarray(end + 1);
      }
      case "skip-line": {
        const end = chunk.indexOf(newline);
        reading.size += end < 0 ? chunk.length : end;
        if (end >= 0) this.#skipped(reading);
        return end < 0 ? nothing : chunk.subarray(end + 1);
      }
      case "bytes": {
        const part = chunk.subarray(0, reading.missing);
        reading.parts.push(part);
        reading.missing -= part.length;
        if (reading.missing === 0) this.#whole(reading);
        return chunk.subarray(part.length);
      }
      case "skip-bytes": {
        const skipped = Math.min(reading.missing, chunk.length);
        reading.missing -= skipped;
        if (reading.missing === 0) this.#reading = emptyLine();
        return chunk.subarray(skipped);
      }
    }
  }

  #line(parts: Buffer[]): void {
    const text = parts.length === 1 && parts[0] ? parts[0].toString() : Buffer.concat(parts).toString();
    const message = parse(text);
    const attachments = message && "bytes" in message ? Attachments.safeParse(message.bytes) : undefined;
    if (!message || attachments?.success === false) return this.#breach(text);
    const announced = attachments?.data ?? [];
    const missing = announced.reduce((sum, { size }) => sum + size, 0);
    if (announced.length === 0) {
      this.#reading = emptyLine();
      this.#listener.message(message);
    } else if (text.length + missing > this.#limit) {
      this.#reading = missing === 0 ? emptyLine() : { kind: "skip-bytes", missing };
      this.#listener.tooLong(text.slice(0, headBytes), text.length + missing);
    } else {
      const reading = { kind: "bytes" as const, message, attachments: announced, parts: [], missing };
      this.#reading = reading;
      if (missing === 0) this.#whole(reading);
    }
  }

  #whole({ message, attachments, parts }: Extract<Reading, { kind: "bytes" }>): void {
    this.#reading = emptyLine();
    if (insertBytes(message, attachments, Buffer.concat(parts))) this.#listener.message(message);
    else this.#breach(JSON.stringify(message));
  }

  #skipped({ head, size }: Extract<Reading, { kind: "skip-line" }>): void {
    this.#reading = emptyLine();
    this.#listener.tooLong(head, size);
  }

  #breach(text: string): void {
    this.#reading = { kind: "over" };
    this.#listener.breach(text.slice(0, headBytes));
  }
}

const nothing = Buffer.alloc(0);
const emptyLine = (): Extract<Reading, { kind: "line" }> => ({ kind: "line", parts: [], size: 0 });

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
