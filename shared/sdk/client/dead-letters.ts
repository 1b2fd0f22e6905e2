/** Dead letters: list, show, send again unchanged, discard. */
import { z } from "zod";
import { DeadLetter } from "../../../schemas/index.ts";
import {
  type Bus,
  decode,
  lettersOfWorkers,
  publishOrThrow,
  type StoredMessage,
  type Subjects,
} from "../../bus/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { userFacing } from "../user-facing.ts";

/** A message that no receiver could process, with the reason. */
export const DeadLetterView = DeadLetter.omit({ v: true, body: true }).extend({
  /** The letter's number, which `show`, `retry` and `discard` take. */
  seq: z.int(),
  bytes: z.int(),
  /** The original body if it is text; shortened in lists. */
  text: z.string().optional(),
});
export type DeadLetterView = z.infer<typeof DeadLetterView>;

/** A page of dead letters, and where the next page begins. */
export interface DeadLetterPage {
  letters: DeadLetterView[];
  /** Number of all dead letters. */
  total: number;
  /** Pass it as `before` to get the next page; undefined on the last page. */
  next?: number;
}

/** Which dead letters to list. */
export interface DeadListOptions {
  /** Maximum number of letters. Default 50. */
  limit?: number | undefined;
  /** Continues after an earlier page: its `next`. */
  before?: number | undefined;
}

const shownInList = 400;
const shownAlone = 256 * 1024;

/**
 * Lists, shows, sends again and discards dead letters.
 *
 * @example
 * ```ts
 * const { letters } = await client.dead.list();
 * for (const { seq, reason } of letters) if (reason.code === "unknown_orchestration") await client.dead.retry(seq);
 * ```
 */
export class DeadLetters {
  readonly #bus: Bus;
  readonly #names: Subjects;

  /** @internal Part of {@link Client}. */
  constructor({ bus, names }: { bus: Bus; names: Subjects }) {
    this.#bus = bus;
    this.#names = names;
  }

  /** Dead letters, newest first. */
  list({ limit = 50, before }: DeadListOptions = {}): Promise<DeadLetterPage> {
    return userFacing(async () => {
      const stream = this.#names.deadStream;
      const info = await this.#bus.streamInfo(stream);
      if (!info || info.messages === 0) return { letters: [], total: 0 };
      const letters: DeadLetterView[] = [];
      let below = Math.min(before ?? info.lastSeq + 1, info.lastSeq + 1);
      // Discarded letters leave gaps, so the window widens until the page is full.
      for (let width = limit; letters.length < limit && below > info.firstSeq; width *= 2) {
        const from = Math.max(info.firstSeq, below - width);
        const found = await this.#bus.read(stream, this.#filter(), from, below - from);
        const views = (found ?? [])
          .filter((message) => message.seq < below)
          .flatMap((message) => view(message, shownInList) ?? [])
          .reverse();
        letters.push(...views.slice(0, limit - letters.length));
        below = from;
      }
      const last = letters.at(-1);
      const more = last !== undefined && last.seq > info.firstSeq && letters.length === limit;
      return { letters, total: info.messages, ...(more ? { next: last.seq } : {}) };
    });
  }

  /** One letter, with its text if it is text. */
  show(seq: number): Promise<DeadLetterView> {
    return userFacing(async () => {
      const shown = view(await this.#message(seq), shownAlone);
      if (!shown) throw notFound(seq);
      return shown;
    });
  }

  /**
   * Publishes the message again unchanged, then deletes the letter. Not in the other order: a message sent
   * twice is applied once (message id), a letter deleted before it is sent is lost.
   */
  retry(seq: number): Promise<{ subject: string }> {
    return userFacing(async () => {
      const message = await this.#message(seq);
      const letter = decode(DeadLetter, message.body);
      if (letter.kind === "invalid") throw notFound(seq);
      const subject = this.#destination(letter.value, message.subject);
      await publishOrThrow(this.#bus, {
        subject,
        body: Buffer.from(letter.value.body, "base64"),
        headers: withoutServerHeaders(letter.value.headers),
        msgId: `retry-${this.#names.deadStream}-${seq}`,
      });
      await this.#bus.deleteMessage(this.#names.deadStream, seq);
      return { subject };
    });
  }

  /** Deletes the letter for good. */
  discard(seq: number): Promise<void> {
    return userFacing(async () => {
      if (!(await this.#bus.deleteMessage(this.#names.deadStream, seq))) throw notFound(seq);
    });
  }

  /** The subject to which the letter's message goes again. A letter of a worker may not name an instance (SEC-7). */
  #destination(letter: DeadLetter, storedAs: string): string {
    // Letters of earlier versions carry the subject under which their message was stored.
    const subject = this.#names.published(letter.subject);
    const prefix = this.#names.prefix === "" ? "" : `${this.#names.prefix}.`;
    const rest = subject.startsWith(prefix) ? subject.slice(prefix.length) : subject;
    const [, kind] =
      /^(orchestrations|activities|claims|sessions)(?:\.[A-Za-z0-9_-]{1,128})+$/.exec(rest) ?? [];
    const isOfWorker = lettersOfWorkers.includes(this.#names.parseDead(storedAs) ?? "");
    if (kind !== undefined && !(isOfWorker && kind === "orchestrations")) return subject;
    throw new HoldfastError({
      code: "not_retryable",
      message: `dead letters cannot be sent again to ${letter.subject}: discard the letter, or publish its message by hand`,
    });
  }

  async #message(seq: number): Promise<StoredMessage> {
    const [message] = (await this.#bus.read(this.#names.deadStream, this.#filter(), seq, 1)) ?? [];
    if (message?.seq !== seq) throw notFound(seq);
    return message;
  }

  #filter(): string {
    return this.#names.deadSubjects[0] ?? "";
  }
}

const notFound = (seq: number): HoldfastError =>
  new HoldfastError({ code: "dead_letter_not_found", message: `there is no dead letter ${seq}` });

function view(message: StoredMessage, longest: number): DeadLetterView | undefined {
  const letter = decode(DeadLetter, message.body);
  if (letter.kind === "invalid") return undefined;
  const { v: _, body, ...rest } = letter.value;
  const bytes = Buffer.from(body, "base64");
  const text = asText(bytes.subarray(0, longest));
  return { ...rest, seq: message.seq, bytes: bytes.length, ...(text === undefined ? {} : { text }) };
}

function asText(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder("utf-8").decode(bytes);
  return text.includes("\u0000") ? undefined : text;
}

/** Removes headers that the server or the delivery added; expected sequences no longer hold. */
const withoutServerHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("Nats-")));
