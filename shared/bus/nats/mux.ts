/**
 * Requests and their answers over one inbox subscription. Written by hand because this is the hot path: the client's
 * own request makes two promises, a timer and a race for each call, this one a single promise; and it ends calls when
 * the connection goes (L2) instead of letting each run into its timeout.
 */
import { createInbox, type Msg, type MsgHdrs } from "@nats-io/nats-core";
import type { Link } from "./link.ts";
import { busClosed, permissionDenied, refusedByClient } from "./nats-errors.ts";

/** Why a call ended without its answer. */
export type Failed = "timeout" | "disconnected" | "closed";

interface Call {
  subject: string;
  deadline: number;
  onReply(message: Msg): void;
  onFailed(why: Failed): void;
  onDenied(error: Error): void;
}

const sweepMs = 50;

export class Mux {
  readonly #link: Link;
  readonly #prefix: string;
  readonly #calls = new Map<string, Call>();
  #counter = 0;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(link: Link, inboxPrefix: string | undefined) {
    this.#link = link;
    this.#prefix = `${createInbox(inboxPrefix)}.`;
    link.subscribe(`${this.#prefix}*`, undefined, (message) => {
      this.#calls.get(message.subject.slice(this.#prefix.length))?.onReply(message);
    });
    link.onState((state) => {
      if (state.kind === "disconnected") this.#failAll(link.closed ? "closed" : "disconnected");
    });
    link.onDenied((subject, error) => {
      for (const [token, call] of [...this.#calls]) {
        if (call.subject === subject) this.#end(token)?.onDenied(error);
      }
    });
  }

  /** One answer. `onFailed` may return a value (an outcome) or throw. */
  request<T>(
    subject: string,
    body: Uint8Array,
    headers: MsgHdrs | undefined,
    timeoutMs: number,
    onReply: (message: Msg) => T,
    onFailed: (why: Failed) => T,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const token = this.#open(subject, timeoutMs, {
        onReply: (message) => {
          this.#end(token);
          try {
            resolve(onReply(message));
          } catch (error) {
            reject(error);
          }
        },
        onFailed: (why) => {
          try {
            resolve(onFailed(why));
          } catch (error) {
            reject(error);
          }
        },
        onDenied: (error) => reject(permissionDenied(subject, error)),
      });
      this.#send(token, subject, body, headers, reject);
    });
  }

  /** Many answers: `onReply` says `done` with the last one. Each answer moves the deadline. */
  stream(
    subject: string,
    body: Uint8Array,
    silenceMs: number,
    onReply: (message: Msg) => "more" | "done",
  ): Promise<"done" | Failed> {
    return new Promise((resolve, reject) => {
      const token = this.#open(subject, silenceMs, {
        onReply: (message) => {
          try {
            if (onReply(message) === "more") {
              const call = this.#calls.get(token);
              if (call) call.deadline = performance.now() + silenceMs;
              return;
            }
            this.#end(token);
            resolve("done");
          } catch (error) {
            this.#end(token);
            reject(error);
          }
        },
        onFailed: resolve,
        onDenied: (error) => reject(permissionDenied(subject, error)),
      });
      this.#send(token, subject, body, undefined, reject);
    });
  }

  #open(
    subject: string,
    timeoutMs: number,
    handlers: Pick<Call, "onReply" | "onFailed" | "onDenied">,
  ): string {
    const token = (this.#counter++).toString(36);
    this.#calls.set(token, { subject, deadline: performance.now() + timeoutMs, ...handlers });
    this.#sweeping ??= setTimeout(() => this.#sweep(), sweepMs);
    return token;
  }

  #send(
    token: string,
    subject: string,
    body: Uint8Array,
    headers: MsgHdrs | undefined,
    reject: (error: unknown) => void,
  ): void {
    if (!this.#link.connected) {
      this.#end(token)?.onFailed(this.#link.closed ? "closed" : "disconnected"); // L1
      return;
    }
    try {
      const reply = this.#prefix + token;
      this.#link.publish(subject, body, headers === undefined ? { reply } : { reply, headers });
    } catch (error) {
      this.#end(token);
      reject(this.#link.closed ? busClosed(subject) : refusedByClient(error, subject));
    }
  }

  #end(token: string): Call | undefined {
    const call = this.#calls.get(token);
    this.#calls.delete(token);
    return call;
  }

  /** One timer for all calls: a timeout may come one sweep late. */
  #sweep(): void {
    const now = performance.now();
    for (const [token, call] of this.#calls) {
      if (call.deadline > now) continue;
      this.#calls.delete(token);
      call.onFailed("timeout");
    }
    this.#sweeping = this.#calls.size > 0 ? setTimeout(() => this.#sweep(), sweepMs) : undefined;
  }

  #failAll(why: Failed): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.onFailed(why);
  }
}
