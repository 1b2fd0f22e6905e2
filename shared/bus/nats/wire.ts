/** Headers and messages between the client library's shape and ours. */
import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import { MsgHdrsImpl } from "@nats-io/nats-core/internal";
import { Fault } from "../../errors/index.ts";
import type { Headers, StoredMessage } from "../bus.ts";

export const noHeaders: Headers = Object.freeze({});
export const emptyBody = new Uint8Array(0);
const text = new TextEncoder();
export const bytes = (value: unknown): Uint8Array => text.encode(JSON.stringify(value));

const badName = /[^\x21-\x39\x3b-\x7e]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these two would end the header and start another
const badValue = /[\r\n\x00]/;

/** Checked here, because the fast constructor below checks nothing and a line break would forge a header. */
export function toWire(headers: Headers): MsgHdrs {
  const lists: Record<string, string[]> = {};
  for (const name in headers) {
    const value = headers[name] ?? "";
    lists[name] = [value];
    if (badName.test(name) || badValue.test(value)) {
      throw new Fault("contract", {
        code: "invalid_header",
        message: `header ${JSON.stringify(name)} has a name or value NATS cannot carry`,
      });
    }
  }
  return MsgHdrsImpl.fromRecord(lists);
}

export function fromWire(headers: MsgHdrs | undefined): Headers {
  if (headers === undefined) return noHeaders;
  const plain: Record<string, string> = {};
  for (const [name, values] of headers) plain[name] = values[0] ?? "";
  return plain;
}

/** Where a delivered message comes from, packed by the server into its reply subject. */
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

/** Headers are parsed when somebody looks: most messages have none anybody reads. */
export class Stored implements StoredMessage {
  readonly subject: string;
  readonly seq: number;
  readonly at: number;
  readonly body: Uint8Array;
  readonly #wire: MsgHdrs | undefined;
  #headers: Headers | undefined;

  constructor(message: Msg, origin: Origin) {
    this.subject = message.subject;
    this.seq = origin.seq;
    this.at = origin.at;
    this.body = message.data;
    this.#wire = message.headers;
  }

  get headers(): Headers {
    return (this.#headers ??= fromWire(this.#wire));
  }
}

/** Direct gets carry the origin as headers beside the message's own. */
const direct = {
  subject: "Nats-Subject",
  seq: "Nats-Sequence",
  time: "Nats-Time-Stamp",
  stream: "Nats-Stream",
  pending: "Nats-Num-Pending",
  lastSeq: "Nats-Last-Sequence",
} as const;
const directNames = new Set<string>(Object.values(direct));

export function fromDirect(message: Msg): StoredMessage {
  const all = message.headers;
  if (!all)
    throw new Fault("bug", { code: "nats_error", message: "a direct get was answered without headers" });
  const plain: Record<string, string> = {};
  for (const [name, values] of all) if (!directNames.has(name)) plain[name] = values[0] ?? "";
  return {
    subject: all.get(direct.subject),
    seq: Number(all.get(direct.seq)),
    at: Date.parse(all.get(direct.time)),
    headers: plain,
    body: message.data,
  };
}

export const pendingOf = (headers: MsgHdrs): number => Number(headers.get(direct.pending) || 0);

/** A status is a message without a body whose header line has a code. */
export const statusOf = (message: Msg): number => message.headers?.code ?? 0;
