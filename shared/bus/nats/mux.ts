/**
 * Requests and their replies over one inbox subscription. Written by hand because this is the hot path: the
 * client library's request makes two promises, a timer and a race per call, this one a single promise. A
 * disconnect ends the calls at once (LINK-2) instead of letting each run into its timeout.
 */
import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import { newInbox, newReply } from "./inbox.ts";
import type { Link } from "./link.ts";
import { busClosed, permissionDenied, refusedByClient } from "./nats-errors.ts";

/** Why a call ended without a reply. */
export type Failed = "timeout" | "disconnected" | "closed";

interface Call {
  readonly subject: string;
  deadline: number;
  /** When to repeat an unanswered request under the same reply address; the first reply counts. */
  resendAt?: number;
  resend?(): void;
  /** Returns `done` with the last reply. */
  onReply(message: Msg): "more" | "done";
  onFailed(why: Failed): void;
  onDenied(error: Error): void;
}

/**
 * Turns a reply, or its absence, into an outcome or a thrown error. One object serves all calls of a kind.
 */
export interface ReplyHandler<T> {
  ofReply(message: Msg, subject: string): T;
  ofFailure(why: Failed, subject: string): T;
}

const sweepMs = 50;
/** Longer than any answer of a healthy server takes, shorter than an election. */
const repeatMs = 1_000;

export class Mux {
  readonly #link: Link;
  readonly #prefix: string;
  readonly #calls = new Map<string, Call>();
  #sweeping: NodeJS.Timeout | undefined;

  constructor(link: Link, inboxPrefix: string | undefined) {
    this.#link = link;
    this.#prefix = newInbox(inboxPrefix);
    link.subscribe(`${this.#prefix}*`, undefined, (message) => {
      const token = message.subject.slice(this.#prefix.length);
      if (this.#calls.get(token)?.onReply(message) === "done") this.#calls.delete(token);
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

  /** A request with one reply. */
  request<T>(
    subject: string,
    body: Uint8Array,
    headers: MsgHdrs | undefined,
    timeoutMs: number,
    handler: ReplyHandler<T>,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const deadline = performance.now() + timeoutMs;
      const token = this.#open(new OneAnswer(subject, deadline, handler, resolve, reject));
      this.#send(token, subject, body, headers, reject);
    });
  }

  /**
   * A request with one reply that may be sent twice: a cluster server that died with the request never
   * answers, while its successor would answer at once.
   */
  requestRepeatedly<T>(
    subject: string,
    body: Uint8Array,
    headers: MsgHdrs | undefined,
    timeoutMs: number,
    handler: ReplyHandler<T>,
  ): Promise<T> {
    if (!this.#link.clustered) return this.request(subject, body, headers, timeoutMs, handler);
    return new Promise<T>((resolve, reject) => {
      const call: Call = new OneAnswer(subject, performance.now() + timeoutMs, handler, resolve, reject);
      const token = this.#open(call);
      call.resendAt = performance.now() + repeatMs;
      call.resend = () => this.#send(token, subject, body, headers, reject);
      call.resend();
    });
  }

  /**
   * A request with many replies: `onReply` returns `done` with the last one. Each reply moves the deadline.
   */
  stream(
    subject: string,
    body: Uint8Array,
    silenceMs: number,
    onReply: (message: Msg) => "more" | "done",
  ): Promise<"done" | Failed> {
    return new Promise((resolve, reject) => {
      const call: Call = {
        subject,
        deadline: performance.now() + silenceMs,
        onReply: (message) => {
          try {
            const rest = onReply(message);
            if (rest === "more") call.deadline = performance.now() + silenceMs;
            else resolve("done");
            return rest;
          } catch (error) {
            reject(error);
            return "done";
          }
        },
        onFailed: resolve,
        onDenied: (error) => reject(permissionDenied(subject, error)),
      };
      const token = this.#open(call);
      this.#send(token, subject, body, undefined, reject);
    });
  }

  #open(call: Call): string {
    const token = newReply(); // SEC-9
    this.#calls.set(token, call);
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
      this.#end(token)?.onFailed(this.#link.closed ? "closed" : "disconnected"); // LINK-1
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

  /** One timer serves all calls: a timeout may come one sweep late. */
  #sweep(): void {
    const now = performance.now();
    for (const [token, call] of this.#calls) {
      if (call.deadline > now) {
        if (call.resendAt !== undefined && call.resendAt <= now) {
          call.resendAt = now + repeatMs;
          call.resend?.();
        }
        continue;
      }
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

class OneAnswer<T> implements Call {
  readonly subject: string;
  readonly deadline: number;
  resendAt?: number;
  resend?: () => void;
  readonly #handler: ReplyHandler<T>;
  readonly #resolve: (outcome: T) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    subject: string,
    deadline: number,
    handler: ReplyHandler<T>,
    resolve: (outcome: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.subject = subject;
    this.deadline = deadline;
    this.#handler = handler;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  onReply(message: Msg): "done" {
    try {
      this.#resolve(this.#handler.ofReply(message, this.subject));
    } catch (error) {
      this.#reject(error);
    }
    return "done";
  }

  onFailed(why: Failed): void {
    try {
      this.#resolve(this.#handler.ofFailure(why, this.subject));
    } catch (error) {
      this.#reject(error);
    }
  }

  onDenied(error: Error): void {
    this.#reject(permissionDenied(this.subject, error));
  }
}
