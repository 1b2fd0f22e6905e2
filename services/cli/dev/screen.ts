/** Terminal output of `dev`: lines, and below them at most one progress bar, redrawn in place. */
import type { Streams } from "../terminal/output.ts";

const barWidth = 30;
const eraseLine = "\r\u001b[K";

export class Screen {
  readonly #out: Streams["stderr"];
  #bar = "";
  /** Without a terminal the bar becomes one line per tenth. */
  #tenths = -1;

  constructor(out: Streams["stderr"]) {
    this.#out = out;
  }

  note(text: string): void {
    this.#out.write(this.#bar === "" ? `${text}\n` : `${eraseLine}${text}\n${this.#bar}`);
  }

  progress(done: number, total: number, label = ""): void {
    const text = bar(done, total, label);
    if (this.#out.isTTY !== true) return this.#inLines(text, Math.floor((10 * done) / total));
    const full = done >= total;
    this.#out.write(`${this.#bar === "" ? "" : eraseLine}${text}${full ? "\n" : ""}`);
    this.#bar = full ? "" : text;
  }

  #inLines(text: string, tenths: number): void {
    if (tenths !== this.#tenths) this.#out.write(`${text}\n`);
    this.#tenths = tenths;
  }
}

function bar(done: number, total: number, label: string): string {
  const filled = Math.round((barWidth * Math.min(done, total)) / total);
  const text = `[${"#".repeat(filled)}${".".repeat(barWidth - filled)}] ${done}/${total}`;
  return label === "" ? text : `${text}  ${label}`;
}
