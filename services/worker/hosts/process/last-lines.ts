import type { Readable } from "node:stream";

const mostLines = 20;
const mostChars = 4096;

/** Keeps the last lines written to a stream, and passes everything on. */
export class LastLines {
  #text = "";

  constructor(stream: Readable | null, passOn: NodeJS.WritableStream) {
    stream?.on("data", (chunk: Buffer) => {
      passOn.write(chunk);
      this.#text = (this.#text + chunk.toString()).slice(-mostChars);
    });
  }

  toString(): string {
    return this.#text.trim().split("\n").slice(-mostLines).join("\n");
  }
}
