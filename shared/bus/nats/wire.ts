/** Converts messages from the server's shape to ours. */

import type { Msg } from "@nats-io/nats-core";
import type { Headers, StoredMessage } from "../bus.ts";
import { headerNames } from "../delivery/header-names.ts";
import { type ParsedHeaders, parseHeaders } from "./headers.ts";

export const emptyBody = new Uint8Array(0);
const text = new TextEncoder();
export const bytes = (value: unknown): Uint8Array => text.encode(JSON.stringify(value));

/** The server counts durations in nanoseconds. */
export const nanos = (ms: number): number => ms * 1e6;

/** Where a delivered message comes from; the server encodes it in the reply subject. */
export interface Origin {
  consumer: string;
  deliveries: number;
  seq: number;
  consumerSeq: number;
  at: number;
  pending: number;
}

/** `$JS.ACK.<stream>.<consumer>.<n>.<seq>.<consumerSeq>.<ns>.<pending>`, or with domain and account before the stream. */
export function originOf(reply: string): Origin {
  const tokens = reply.split(".");
  const skip = tokens.length > 9 ? 2 : 0;
  const number = (index: number) => Number(tokens[index + skip]);
  return {
    consumer: tokens[3 + skip] ?? "",
    deliveries: number(4),
    seq: number(5),
    consumerSeq: number(6),
    at: Math.floor(number(7) / 1e6),
    pending: number(8),
  };
}

/** Parses the headers at first access: most messages have none that anyone reads. */
export class Stored implements StoredMessage {
  readonly subject: string;
  readonly seq: number;
  readonly at: number;
  readonly body: Uint8Array;
  readonly #message: Msg;
  #headers: Headers | undefined;

  constructor(message: Msg, origin: Origin) {
    this.subject = message.subject;
    this.seq = origin.seq;
    this.at = origin.at;
    this.body = message.data;
    this.#message = message;
  }

  get headers(): Headers {
    return (this.#headers ??= parseHeaders(this.#message).headers);
  }
}

/** A direct get's reply carries the origin as headers beside the message's own. */
const direct = {
  subject: headerNames.storedSubject,
  seq: headerNames.storedSeq,
  time: headerNames.storedAt,
  stream: headerNames.storedStream,
  pending: headerNames.pending,
  lastSeq: headerNames.previousSeq,
} as const;
const directNames = new Set<string>(Object.values(direct));

export function fromDirect(message: Msg, { headers }: ParsedHeaders): StoredMessage {
  const own: Record<string, string> = {};
  for (const name in headers) if (!directNames.has(name)) own[name] = headers[name] ?? "";
  return {
    subject: headers[direct.subject] ?? "",
    seq: Number(headers[direct.seq]),
    at: Date.parse(headers[direct.time] ?? ""),
    headers: own,
    body: message.data,
  };
}

export const pendingOf = ({ headers }: ParsedHeaders): number => Number(headers[direct.pending] ?? 0);
