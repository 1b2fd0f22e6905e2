/** The JetStream API: JSON requests and replies. Every request here is idempotent and may be repeated. */
import type { Msg } from "@nats-io/nats-core";
import type { Fault } from "../../errors/index.ts";
import { statusOf } from "./headers.ts";
import type { Link } from "./link.ts";
import type { Failed, Mux } from "./mux.ts";
import { type ApiError, busClosed, faultFrom, noStream, unavailable } from "./nats-errors.ts";
import { bytes, emptyBody } from "./wire.ts";

export type Answer<T> = { kind: "ok"; value: T } | { kind: "error"; error: ApiError } | { kind: "nobody" };

const prefix = "$JS.API.";
const decoder = new TextDecoder();

export class Api {
  readonly #link: Link;
  readonly #mux: Mux;
  readonly #timeoutMs: number;

  constructor(link: Link, mux: Mux, timeoutMs: number) {
    this.#link = link;
    this.#mux = mux;
    this.#timeoutMs = timeoutMs;
  }

  /** Repeats the request after a disconnect until the timeout; then throws a transient fault. */
  async ask<T>(subject: string, body?: unknown): Promise<Answer<T>> {
    const deadline = performance.now() + this.#timeoutMs;
    const payload = body === undefined ? emptyBody : bytes(body);
    for (;;) {
      const left = deadline - performance.now();
      if (left <= 0 || !(await this.#link.ready(left))) throw this.lost(subject);
      const answer = await this.#mux.requestRepeatedly<Answer<T> | Failed>(
        prefix + subject,
        payload,
        undefined,
        Math.max(1, deadline - performance.now()),
        { ofReply: parse<T>, ofFailure: (why) => why },
      );
      if (typeof answer === "object") return answer;
      if (answer !== "disconnected") throw this.lost(subject);
    }
  }

  /** Like `ask`, but every error reply throws a fault. */
  async get<T>(subject: string, body?: unknown): Promise<T> {
    const answer = await this.ask<T>(subject, body);
    if (answer.kind === "ok") return answer.value;
    throw answer.kind === "nobody" ? noStream(subject) : faultFrom(answer.error, subject);
  }

  /** Like `ask`, but the error codes in `missing` mean that the thing does not exist: returns undefined. */
  async find<T>(subject: string, body: unknown, missing: readonly number[]): Promise<T | undefined> {
    const answer = await this.ask<T>(subject, body);
    if (answer.kind === "ok") return answer.value;
    if (answer.kind === "nobody") throw noStream(subject);
    if (missing.includes(answer.error.err_code)) return undefined;
    throw faultFrom(answer.error, subject);
  }

  lost(subject: string): Fault {
    return this.#link.closed ? busClosed(subject) : unavailable(subject);
  }
}

function parse<T>(message: Msg): Answer<T> {
  if (message.data.length === 0 && statusOf(message) === 503) return { kind: "nobody" };
  // The server's JSON is trusted to have the documented shape.
  const value = JSON.parse(decoder.decode(message.data)) as T & { error?: ApiError };
  return value.error ? { kind: "error", error: value.error } : { kind: "ok", value };
}
