/** The answers to several tasks that came in one message: sent together when the last one is known. */
import type { CoreMessage } from "../../../shared/bus/index.ts";

/** Room for subject and headers within the server's payload limit. */
const headroomBytes = 8 * 1024;

export class JointAnswer {
  readonly #reply: CoreMessage["reply"];
  readonly #answers: Uint8Array[] = [];
  #missing: number;
  /** Longer answers might not fit into one message together. */
  readonly longestBytes: number;

  constructor({ reply }: Pick<CoreMessage, "reply">, tasks: number, maxPayloadBytes: number) {
    this.#reply = reply;
    this.#missing = tasks;
    this.longestBytes = Math.floor((maxPayloadBytes - headroomBytes) / tasks) - 1;
  }

  /** Called once for each place. */
  set(place: number, answer: Uint8Array): void {
    this.#answers[place] = answer;
    if (--this.#missing === 0) this.#reply?.(this.#joined());
  }

  #joined(): Uint8Array {
    const parts: Uint8Array[] = [Buffer.from('{"v":1,"kind":"several","answers":[')];
    this.#answers.forEach((answer, place) => {
      if (place > 0) parts.push(comma);
      parts.push(answer);
    });
    parts.push(Buffer.from("]}"));
    return Buffer.concat(parts);
  }
}

const comma = Buffer.from(",");
