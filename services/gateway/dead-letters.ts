/** Dead letters: look, send again as it came, or drop. */
import { z } from "zod";
import { DeadLetter } from "../../schemas/index.ts";
import type { Bus, StoredMessage } from "../../shared/bus/bus.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { notFound, Problem, unknownOutcome } from "./http/problem.ts";
import { parseBody } from "./live/bucket-tail.ts";

export const DeadLetterView = DeadLetter.omit({ v: true, body: true }).extend({
  seq: z.int(),
  bytes: z.int(),
  /** The original body, where it is text; cut in lists. */
  text: z.string().optional(),
});
export type DeadLetterView = z.infer<typeof DeadLetterView>;

const shownInList = 400;
const shownAlone = 256 * 1024;

export class DeadLetters {
  readonly #bus: Bus;
  readonly #names: Subjects;

  constructor(bus: Bus, names: Subjects) {
    this.#bus = bus;
    this.#names = names;
  }

  /** Latest first; `before` continues an earlier page. */
  async list(
    limit: number,
    before?: number,
  ): Promise<{ letters: DeadLetterView[]; total: number; next?: number }> {
    const stream = this.#names.deadStream;
    const info = await this.#bus.streamInfo(stream);
    if (!info || info.messages === 0) return { letters: [], total: 0 };
    const letters: DeadLetterView[] = [];
    let below = Math.min(before ?? info.lastSeq + 1, info.lastSeq + 1);
    // Discarded letters leave gaps, so step back in widening windows until the page is full.
    for (let width = limit; letters.length < limit && below > info.firstSeq; width *= 2) {
      const from = Math.max(info.firstSeq, below - width);
      const found = await this.#bus.read(stream, this.#filter(), from, below - from);
      const views = (found ?? [])
        .filter((message) => message.seq < below)
        .flatMap((message) => view(message, shownInList) ?? [])
        .reverse();
      letters.push(...views.slice(0, limit - letters.length));
      below = views.length > limit ? (letters.at(-1)?.seq ?? from) : from;
    }
    const last = letters.at(-1);
    const more = last !== undefined && last.seq > info.firstSeq && letters.length === limit;
    return { letters, total: info.messages, ...(more ? { next: last.seq } : {}) };
  }

  async show(seq: number): Promise<DeadLetterView> {
    const shown = view(await this.#message(seq), shownAlone);
    if (!shown) throw notFound("dead letter", String(seq));
    return shown;
  }

  /**
   * Published again as it came, then deleted. Not the other way round: a letter sent twice is applied once (message
   * id), a letter deleted and not sent is lost.
   */
  async retry(seq: number): Promise<{ subject: string }> {
    const letter = await this.#letter(seq);
    const subject = this.#destination(letter);
    const outcome = await this.#bus.publish(subject, Buffer.from(letter.body, "base64"), {
      headers: withoutServerHeaders(letter.headers),
      msgId: `retry-${this.#names.deadStream}-${seq}`,
    });
    if (outcome.kind !== "stored") throw unknownOutcome();
    await this.#bus.deleteMessage(this.#names.deadStream, seq);
    return { subject };
  }

  async discard(seq: number): Promise<void> {
    if (!(await this.#bus.deleteMessage(this.#names.deadStream, seq))) {
      throw notFound("dead letter", String(seq));
    }
  }

  /** The inbox stores under `inbox.<partition>.…`; what senders use is `orchestrations.…`. */
  #destination(letter: DeadLetter): string {
    const prefix = this.#names.prefix === "" ? "" : `${this.#names.prefix}.`;
    const rest = letter.subject.startsWith(prefix) ? letter.subject.slice(prefix.length) : letter.subject;
    const inbox = /^inbox\.\d+\.(.+)$/.exec(rest);
    const subject = inbox ? `orchestrations.${inbox[1]}` : rest;
    if (!/^(orchestrations|activities|claims|sessions)(\.[A-Za-z0-9_-]{1,128})+$/.test(subject)) {
      throw new Problem({
        status: 409,
        code: "not_retryable",
        message: `${letter.subject} is not a subject a letter can be sent to again`,
        hint: "Discard it, or publish it by hand where it belongs.",
      });
    }
    return `${prefix}${subject}`;
  }

  async #letter(seq: number): Promise<DeadLetter> {
    const letter = parseBody(DeadLetter, (await this.#message(seq)).body);
    if (!letter) throw notFound("dead letter", String(seq));
    return letter;
  }

  async #message(seq: number): Promise<StoredMessage> {
    const [message] = (await this.#bus.read(this.#names.deadStream, this.#filter(), seq, 1)) ?? [];
    if (message?.seq !== seq) throw notFound("dead letter", String(seq));
    return message;
  }

  #filter(): string {
    return this.#names.deadSubjects[0] ?? "";
  }
}

function view(message: StoredMessage, longest: number): DeadLetterView | undefined {
  const letter = parseBody(DeadLetter, message.body);
  if (!letter) return undefined;
  const { v: _, body, ...rest } = letter;
  const bytes = Buffer.from(body, "base64");
  const text = asText(bytes.subarray(0, longest));
  return { ...rest, seq: message.seq, bytes: bytes.length, ...(text === undefined ? {} : { text }) };
}

function asText(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder("utf-8").decode(bytes);
  return text.includes("\u0000") ? undefined : text;
}

/** What the server or a delivery added is not part of the message; expectations of then are wrong now. */
const withoutServerHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("Nats-")));
