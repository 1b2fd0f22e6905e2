/**
 * The loop that keeps messages of a pull consumer flowing to one handler.
 *
 * PULL-1 The loop never requests more messages than there is room for.
 * PULL-2 Silence is noticed: the server sends a heartbeat every second; after 2.5 s without one the loop
 *    requests everything anew.
 * PULL-3 The meaning of 409 or "no responders" is not read from the text: the consumer is looked up. The loop
 *    ends only if the consumer does not exist, or is another one under the same name.
 * PULL-4 A message that arrives while the loop stops is given back at once instead of waiting for its
 *    redelivery.
 */
import type { Msg, Subscription } from "@nats-io/nats-core";
import { headerNames } from "../delivery/header-names.ts";
import { type ParsedHeaders, parseHeaders } from "./headers.ts";
import { newInbox } from "./inbox.ts";
import type { Link } from "./link.ts";
import { bytes, nanos } from "./wire.ts";

export type Existence = "exists" | "gone" | "unsure";

interface PullOptions {
  stream: string;
  consumer: string;
  inboxPrefix: string | undefined;
  /** How many more messages may be requested. */
  room(): number;
  /** When the server forgets a request that it could not fill. */
  expiresMs?: number;
  /** Messages requested at a time; a refill waits until a quarter of them are free. */
  maxMessages: number;
  onMessage(message: Msg): void;
  /** Returns a message to the server (PULL-4); undefined for consumers without acknowledgements. */
  giveBack?(message: Msg): void;
  /** Called on a heartbeat: the server has no message at the moment, and has sent so many. */
  onIdle?(deliveries: number): void;
  onReconnect?(): void;
  lookUp(): Promise<Existence>;
}

interface Request {
  remaining: number;
  deadline: number;
}

const longestMs = 10_000;
const heartbeatMs = 1_000;
const silenceMs = 2_500;
/** Pause before the next request to a consumer that exists and refuses. */
const refusedMs = 50;
const unsureMs = 200;

export class Pull {
  readonly ended: Promise<"stopped" | "gone">;
  readonly #link: Link;
  readonly #options: PullOptions;
  readonly #inbox: string;
  readonly #subject: string;
  readonly #requests = new Map<string, Request>();
  readonly #unlisten: () => void;
  readonly #tick: NodeJS.Timeout;
  #subscription: Subscription;
  #counter = 0;
  #heardAt = performance.now();
  #pumping = false;
  #checking = false;
  #retry: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | undefined;
  #finished = false;
  #end: (how: "stopped" | "gone") => void = () => undefined;

  constructor(link: Link, options: PullOptions) {
    this.#link = link;
    this.#options = options;
    this.#inbox = newInbox(options.inboxPrefix);
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${options.stream}.${options.consumer}`;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#subscription = link.subscribe(`${this.#inbox}*`, undefined, (message) => this.#receive(message));
    this.#unlisten = link.onState((state) => {
      if (state.kind === "disconnected") this.#requests.clear();
      if (state.kind === "reconnected") this.#reconnected();
      if (link.closed) this.#finish("stopped");
    });
    this.#tick = setInterval(() => this.#watch(), heartbeatMs);
    this.#tick.unref();
    this.#pump();
  }

  /** Call when there may be room again. Cheap; at most one refill per tick. */
  refill(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      this.#pump();
    });
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    // Unsubscribing makes the server drop our open requests; the flush brings in the messages it had sent
    // before.
    if (!this.#link.closed && !this.#subscription.isClosed()) {
      await this.#subscription.drain().catch(() => undefined); // Disconnected: no message can arrive.
    }
    this.#finish("stopped");
  }

  /** Ends without waiting, for callers that know that no message is under way. */
  drop(): void {
    this.#stopping ??= Promise.resolve();
    this.#subscription.unsubscribe();
    this.#finish("stopped");
  }

  #finish(how: "stopped" | "gone"): void {
    if (this.#finished) return;
    this.#finished = true;
    clearInterval(this.#tick);
    clearTimeout(this.#retry);
    this.#unlisten();
    if (!this.#link.closed && !this.#subscription.isClosed()) this.#subscription.unsubscribe();
    this.#end(how);
  }

  #pump(): void {
    if (this.#stopping || this.#finished || this.#checking || !this.#link.connected) return;
    const { maxMessages, room } = this.#options;
    const expiresMs = Math.min(this.#options.expiresMs ?? longestMs, longestMs);
    let asked = 0;
    for (const request of this.#requests.values()) asked += request.remaining;
    const batch = Math.min(room(), maxMessages) - asked; // PULL-1
    if (batch <= 0 || (asked > 0 && batch < Math.ceil(maxMessages / 4))) return;
    const token = (this.#counter++).toString(36);
    if (this.#requests.size === 0) this.#heardAt = performance.now();
    this.#requests.set(token, { remaining: batch, deadline: performance.now() + expiresMs + silenceMs });
    // The server refuses heartbeats that are not shorter than half of the request's time.
    const heartbeat = expiresMs > 2 * heartbeatMs && { idle_heartbeat: nanos(heartbeatMs) };
    const body = bytes({ batch, expires: nanos(expiresMs), ...heartbeat });
    this.#link.publish(this.#subject, body, { reply: this.#inbox + token });
  }

  #receive(message: Msg): void {
    this.#heardAt = performance.now();
    if (message.subject.startsWith(this.#inbox)) {
      this.#status(message.subject.slice(this.#inbox.length), parseHeaders(message));
      return;
    }
    if (this.#stopping) {
      this.#options.giveBack?.(message); // PULL-4
      return;
    }
    this.#count();
    try {
      this.#options.onMessage(message);
    } finally {
      this.refill();
    }
  }

  /** The server serves requests in the order they were made. */
  #count(): void {
    for (const [token, request] of this.#requests) {
      if (--request.remaining <= 0) this.#requests.delete(token);
      return;
    }
  }

  #status(token: string, { status, headers }: ParsedHeaders): void {
    if (status === 100) {
      this.#options.onIdle?.(Number(headers[headerNames.lastDelivery] ?? 0));
      return;
    }
    if (!this.#requests.delete(token)) return;
    if (status === 404 || status === 408) this.refill();
    else void this.#check();
  }

  #reconnected(): void {
    this.#options.onReconnect?.();
    void this.#check(0);
  }

  #watch(): void {
    if (!this.#link.connected || this.#stopping) return;
    const now = performance.now();
    for (const [token, request] of this.#requests) if (request.deadline < now) this.#requests.delete(token);
    if (this.#requests.size > 0 && now - this.#heardAt > silenceMs) {
      void this.#check(); // PULL-2
      return;
    }
    this.#pump();
  }

  async #check(pauseMs = refusedMs): Promise<void> {
    if (this.#checking || this.#stopping || this.#finished) return;
    this.#checking = true;
    this.#requests.clear();
    const found = await this.#options.lookUp();
    this.#heardAt = performance.now();
    if (this.#stopping || this.#finished) return;
    if (found === "gone") return this.#finish("gone"); // PULL-3
    this.#retry = setTimeout(
      () => {
        this.#checking = false;
        if (found === "exists") this.#pump();
        else void this.#check();
      },
      found === "exists" ? pauseMs : unsureMs,
    );
  }
}
