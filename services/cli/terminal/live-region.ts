/** Text at the end of a terminal, redrawn in place. */
import type { Sink } from "./output.ts";

export class LiveRegion {
  readonly #out: Sink;
  #lines = 0;

  constructor(out: Sink) {
    this.#out = out;
  }

  get columns(): number {
    return Math.max(20, this.#out.columns ?? 80);
  }

  /** One row is left for the cursor. */
  get rows(): number {
    return Math.max(5, (this.#out.rows ?? 24) - 1);
  }

  /** Lines must fit the width: a wrapped line would be counted wrong. */
  draw(text: string): void {
    const lines = text.split("\n");
    const up = this.#lines > 0 ? `\u001b[${this.#lines}A` : "";
    // Each line is overwritten and its rest erased, then everything below: nothing flickers.
    this.#out.write(`${up}\r${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
    this.#lines = lines.length;
  }
}
