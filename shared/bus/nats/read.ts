/**
 * Reading without a consumer: direct gets, one subject or filter at a time, page by page.
 *
 * READ-1 A direct get stays unanswered if the stream does not exist, but also if its server is closing down
 *    stream by stream, or a replica has not opened it yet. The JetStream API knows the difference: a server
 *    that closes down does not answer there at all. So the reader asks the API before it reports a stream as missing.
 *    (An orchestrator that took a closed history for a missing one lost a completion.)
 */
import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../errors/index.ts";
import type { StoredMessage } from "../bus.ts";
import type { Api } from "./api.ts";
import { noHeaders, type ParsedHeaders, parseHeaders, parseText } from "./headers.ts";
import type { Link } from "./link.ts";
import type { Failed, Mux, ReplyHandler } from "./mux.ts";
import { codes } from "./nats-errors.ts";
import { bytes, emptyBody, fromDirect, pendingOf } from "./wire.ts";

interface Page {
  messages: StoredMessage[];
  pending: number;
}

const pageSize = 5_000;
const silenceMs = 5_000;
const askAgainMs = 50;

/** No server answered: the stream is missing or cannot be reached at the moment (READ-1). */
const nobody = Symbol("nobody");
type Nobody = typeof nobody;

export class Reader {
  readonly #link: Link;
  readonly #mux: Mux;
  readonly #api: Api;

  constructor(link: Link, mux: Mux, api: Api) {
    this.#link = link;
    this.#mux = mux;
    this.#api = api;
  }

  async read(
    stream: string,
    subject: string,
    fromSeq = 1,
    limit = Number.POSITIVE_INFINITY,
  ): Promise<StoredMessage[] | undefined> {
    const all: StoredMessage[] = [];
    let from = fromSeq;
    for (;;) {
      const page = await this.#pageOf(stream, subject, from, Math.min(pageSize, limit - all.length));
      if (page === undefined) return undefined;
      for (const message of page.messages) all.push(message);
      const last = page.messages.at(-1);
      if (last === undefined || page.pending === 0 || all.length >= limit) return all;
      from = last.seq + 1;
    }
  }

  last(stream: string, subject: string, leader: boolean): Promise<StoredMessage | undefined> {
    return leader ? this.#lastOfLeader(stream, subject) : this.#lastOfAny(stream, subject);
  }

  /** Any replica may answer. */
  async #lastOfAny(stream: string, subject: string): Promise<StoredMessage | undefined> {
    const found = await this.#retried<StoredMessage | Nobody | undefined>(`read ${subject}`, () =>
      this.#mux.requestRepeatedly<StoredMessage | Nobody | undefined | Failed>(
        `$JS.API.DIRECT.GET.${stream}.${subject}`,
        emptyBody,
        undefined,
        silenceMs,
        lastMessageHandler,
      ),
    );
    return found === nobody ? this.#lastOfLeader(stream, subject) : found;
  }

  /** READ-1 */
  async #exists(stream: string): Promise<boolean> {
    return (await this.#api.find(`STREAM.INFO.${stream}`, undefined, [codes.streamNotFound])) !== undefined;
  }

  async #lastOfLeader(stream: string, subject: string): Promise<StoredMessage | undefined> {
    interface Found {
      message: { subject: string; seq: number; time: string; hdrs?: string; data?: string };
    }
    const found = await this.#api.find<Found>(`STREAM.MSG.GET.${stream}`, { last_by_subj: subject }, [
      codes.noMessageFound,
      codes.streamNotFound,
    ]);
    if (!found) return undefined;
    const { message } = found;
    return {
      subject: message.subject,
      seq: message.seq,
      at: Date.parse(message.time),
      headers:
        message.hdrs === undefined
          ? noHeaders
          : parseText(Buffer.from(message.hdrs, "base64").toString()).headers,
      body: message.data === undefined ? emptyBody : new Uint8Array(Buffer.from(message.data, "base64")),
    };
  }

  async #pageOf(stream: string, subject: string, from: number, batch: number): Promise<Page | undefined> {
    const doing = `read ${stream}`;
    const deadline = performance.now() + silenceMs;
    for (;;) {
      const page = await this.#retried(doing, () => this.#page(stream, subject, from, batch));
      if (page !== nobody) return page;
      if (!(await this.#exists(stream))) return undefined;
      if (performance.now() > deadline) throw this.#api.lost(doing);
      await delay(askAgainMs);
    }
  }

  async #page(stream: string, subject: string, from: number, batch: number): Promise<Page | Nobody | Failed> {
    const page: Page = { messages: [], pending: 0 };
    let missing = false;
    const ended = await this.#mux.stream(
      `$JS.API.DIRECT.GET.${stream}`,
      bytes({ seq: from, next_by_subj: subject, batch }),
      silenceMs,
      (reply) => {
        const parsed = parseHeaders(reply);
        if (parsed.status === 0) {
          page.messages.push(fromDirect(reply, parsed));
          return "more";
        }
        if (parsed.status === 204) page.pending = pendingOf(parsed);
        else if (parsed.status === 503) missing = true;
        else if (parsed.status !== 404) throw refused(`read ${stream}`, parsed);
        return "done";
      },
    );
    if (ended !== "done") return ended;
    return missing ? nobody : page;
  }

  /** Repeats a read after a disconnect, up to the time a read may take. */
  async #retried<T extends object | Nobody | undefined>(
    doing: string,
    act: () => Promise<T | Failed>,
  ): Promise<T> {
    const deadline = performance.now() + silenceMs;
    for (;;) {
      const left = deadline - performance.now();
      if (left <= 0 || !(await this.#link.ready(left))) throw this.#api.lost(doing);
      const result = await act();
      if (typeof result !== "string") return result;
      if (result !== "disconnected") throw this.#api.lost(doing);
    }
  }
}

const lastMessageHandler: ReplyHandler<StoredMessage | Nobody | undefined | Failed> = {
  ofReply: (reply, subject) => {
    const parsed = parseHeaders(reply);
    if (parsed.status === 0) return fromDirect(reply, parsed);
    if (parsed.status === 404) return undefined;
    if (parsed.status === 503) return nobody;
    throw refused(`read ${subject}`, parsed);
  },
  ofFailure: (why) => why,
};

const refused = (doing: string, { status, description }: ParsedHeaders): Fault =>
  new Fault(status >= 500 || status === 408 ? "transient" : "bug", {
    code: "nats_error",
    message: `${doing}: ${status} ${description}`,
  });
