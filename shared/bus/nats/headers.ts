/** Headers to bytes and back, by hand, because every message has them (figures: ../README.md). */
import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import { Fault } from "../../errors/index.ts";
import type { Headers } from "../bus.ts";

export const noHeaders: Headers = Object.freeze({});
const version = "NATS/1.0";
const badName = /[^\x21-\x39\x3b-\x7e]/;
/** These characters would end the header line and begin another. */
const isValue = (value: string): boolean =>
  !value.includes("\n") && !value.includes("\r") && !value.includes("\0");

/** Few distinct names occur, so checked ones are remembered. */
const goodNames = new Set<string>();
const mostNames = 1_000;

function isName(name: string): boolean {
  if (goodNames.has(name)) return true;
  if (badName.test(name)) return false;
  if (goodNames.size < mostNames) goodNames.add(name);
  return true;
}

/** Headers of a message to send, built as text. The client library only calls `encode` on them. */
export class WireHeaders implements MsgHdrs {
  readonly hasError = false;
  readonly status = "";
  readonly code = 0;
  readonly description = "";
  #text = `${version}\r\n`;

  add(name: string, value: string): this {
    if (!isName(name) || !isValue(value)) {
      throw new Fault("contract", {
        code: "invalid_header",
        message: `header ${JSON.stringify(name)} has a name or value NATS cannot carry`,
      });
    }
    this.#text += `${name}: ${value}\r\n`;
    return this;
  }

  addAll(headers: Headers): this {
    for (const name in headers) this.add(name, headers[name] ?? "");
    return this;
  }

  encode(): Uint8Array {
    return Buffer.from(`${this.#text}\r\n`);
  }

  set(name: string, value: string): void {
    if (this.has(name)) this.delete(name);
    this.add(name, value);
  }

  append(name: string, value: string): void {
    this.add(name, value);
  }

  delete(name: string): void {
    const { [name]: _, ...others } = this.#parsed();
    this.#text = `${version}\r\n`;
    this.addAll(others);
  }

  get(name: string): string {
    return this.#parsed()[name] ?? "";
  }

  last(name: string): string {
    return this.get(name);
  }

  has(name: string): boolean {
    return this.#parsed()[name] !== undefined;
  }

  keys(): string[] {
    return Object.keys(this.#parsed());
  }

  values(name: string): string[] {
    return this.has(name) ? [this.get(name)] : [];
  }

  *[Symbol.iterator](): IterableIterator<[string, string[]]> {
    for (const [name, value] of Object.entries(this.#parsed())) yield [name, [value]];
  }

  #parsed(): Headers {
    return parseText(`${this.#text}\r\n`).headers;
  }
}

export interface ParsedHeaders {
  /** 0 for an ordinary message. */
  status: number;
  description: string;
  headers: Headers;
}

const none: ParsedHeaders = { status: 0, description: "", headers: noHeaders };

/**
 * The fields in which the client library keeps a received message; its public accessors parse the headers
 * in their own way.
 */
interface ReceivedBytes {
  _msg: { hdr: number };
  _rdata: Uint8Array;
}

const hasBytes = (message: object): message is ReceivedBytes => "_msg" in message && "_rdata" in message;

/** The first value of each header. */
export function parseHeaders(message: Msg): ParsedHeaders {
  if (hasBytes(message)) {
    const { _msg, _rdata } = message;
    if (_msg.hdr <= 0) return none;
    return parseText(Buffer.from(_rdata.buffer, _rdata.byteOffset, _msg.hdr).toString());
  }
  const { headers } = message;
  if (!headers) return none;
  const { code, description } = headers;
  return {
    status: code,
    description,
    headers: Object.fromEntries([...headers].map(([name, values]) => [name, values[0] ?? ""])),
  };
}

export function parseText(text: string): ParsedHeaders {
  const headers: Record<string, string> = {};
  let from = text.indexOf("\r\n");
  const first = text.slice(version.length, from).trim();
  while (from >= 0 && from + 2 < text.length) {
    const begin = from + 2;
    from = text.indexOf("\r\n", begin);
    const line = text.slice(begin, from < 0 ? undefined : from);
    const colon = line.indexOf(":");
    if (colon > 0) headers[line.slice(0, colon)] ??= line.slice(colon + 1).trim();
  }
  if (first === "") return { status: 0, description: "", headers };
  return { status: Number.parseInt(first, 10) || 0, description: first.slice(3).trim(), headers };
}

/** The status code in the header line; 0 for an ordinary message. */
export const statusOf = (message: Msg): number => parseHeaders(message).status;
