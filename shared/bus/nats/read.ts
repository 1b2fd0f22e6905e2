/** Reading without a consumer: direct gets, one subject or filter at a time, page by page. */
import { Fault } from "../../errors/index.ts";
import type { StoredMessage } from "../bus.ts";
import type { Api } from "./api.ts";
import { noHeaders, type ParsedHeaders, parseHeaders, parseText } from "./headers.ts";
import type { Link } from "./link.ts";
import type { Failed, Mux } from "./mux.ts";
import { codes } from "./nats-errors.ts";
import { bytes, emptyBody, fromDirect, pendingOf } from "./wire.ts";

interface Page {
  messages: StoredMessage[];
  pending: number;
}

const pageSize = 5_000;
const silenceMs = 5_000;

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
      const page = await this.#retried(`read ${stream}`, () =>
        this.#page(stream, subject, from, Math.min(pageSize, limit - all.length)),
      );
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

  /** Answered by any replica, and quickly by nobody where there is no such stream. */
  #lastOfAny(stream: string, subject: string): Promise<StoredMessage | undefined> {
    return this.#retried(`read ${subject}`, () =>
      this.#mux.request<StoredMessage | undefined | Failed>(
        `$JS.API.DIRECT.GET.${stream}.${subject}`,
        emptyBody,
        undefined,
        silenceMs,
        (reply) => {
          const parsed = parseHeaders(reply);
          if (parsed.status === 0) return fromDirect(reply, parsed);
          if (parsed.status === 404 || parsed.status === 503) return undefined;
          throw refused(`read ${subject}`, parsed);
        },
        (why) => why,
      ),
    );
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

  async #page(
    stream: string,
    subject: string,
    from: number,
    batch: number,
  ): Promise<Page | undefined | Failed> {
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
    return missing ? undefined : page;
  }

  /** Reads may be repeated: tried again after a disconnect, as long as a read may take. */
  async #retried<T extends object | undefined>(doing: string, act: () => Promise<T | Failed>): Promise<T> {
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

const refused = (doing: string, { status, description }: ParsedHeaders): Fault =>
  new Fault(status >= 500 || status === 408 ? "transient" : "bug", {
    code: "nats_error",
    message: `${doing}: ${status} ${description}`,
  });
