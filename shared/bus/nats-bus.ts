/** The real bus: each method delegates to the class that implements it. */

import type {
  AccountInfo,
  BlobStore,
  Bus,
  BusState,
  ConsumeOptions,
  ConsumerInfo,
  ConsumerSpec,
  Consumption,
  CoreMessage,
  Delivery,
  Headers,
  PublishOptions,
  PublishOutcome,
  Reply,
  Stoppable,
  StoredMessage,
  StreamInfo,
  StreamSpec,
} from "./bus.ts";
import { headerNames } from "./delivery/header-names.ts";
import { Api } from "./nats/api.ts";
import {
  type ConnectOptions,
  jetStreamDisabled,
  maskedUrls,
  openConnection,
  untilReachable,
} from "./nats/connect.ts";
import { Consumers } from "./nats/consumers.ts";
import { FirstSequence } from "./nats/first-sequence.ts";
import { parseHeaders, WireHeaders } from "./nats/headers.ts";
import { lastOfEach } from "./nats/last-of-each.ts";
import { Link } from "./nats/link.ts";
import { Mux, type ReplyHandler } from "./nats/mux.ts";
import { busClosed, faultFrom, refusedByClient, unavailable } from "./nats/nats-errors.ts";
import { Publisher } from "./nats/publish.ts";
import { Reader } from "./nats/read.ts";
import { Streams } from "./nats/streams.ts";
import { Tail, type TailOptions } from "./nats/tail.ts";
import { LazyBlobs } from "./storage/lazy-blobs.ts";
import { matches } from "./subject-match.ts";

export interface BusOptions extends ConnectOptions {
  /** Name of the object store for big values; `subjects(prefix).blobBucket`. */
  blobBucket?: string;
  /** Replicas of the object store, if this client creates it. */
  replicas?: number;
  /** Streams and stores exist already: this client creates none. */
  provisioned?: boolean;
  /** How long an idempotent request may take, including the wait for a reconnect. */
  apiTimeoutMs?: number;
}

/** Connects and checks the server; afterwards the client reconnects for ever until it is closed. */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const { nc, info } = await openConnection(options);
  const bus = new NatsBus(new Link(nc, info, options.announce), options);
  try {
    await untilReachable(options, () => bus.checkJetStream(options));
  } catch (error) {
    await bus.close();
    throw error;
  }
  options.announce({
    kind: "bus.connected",
    url: maskedUrls({ url: nc.getServer() }),
    version: info.version,
  });
  return bus;
}

class NatsBus implements Bus {
  readonly blobs: BlobStore;
  readonly #link: Link;
  readonly #inboxPrefix: string | undefined;
  readonly #mux: Mux;
  readonly #api: Api;
  readonly #streams: Streams;
  readonly #publisher: Publisher;
  readonly #reader: Reader;
  readonly #consumers: Consumers;

  constructor(link: Link, options: BusOptions) {
    this.#link = link;
    this.#inboxPrefix = options.inboxPrefix;
    this.#mux = new Mux(link, options.inboxPrefix);
    this.#api = new Api(link, this.#mux, options.apiTimeoutMs ?? 5_000);
    this.#streams = new Streams(this.#api, new FirstSequence(link, this.#mux));
    this.#publisher = new Publisher(link, this.#mux);
    this.#reader = new Reader(link, this.#mux, this.#api);
    this.#consumers = new Consumers(link, this.#mux, this.#api, options.inboxPrefix);
    this.blobs = new LazyBlobs(async () => {
      const { ObjectBlobs } = await import("./storage/blobs.ts");
      const { blobBucket = "blobs", replicas = 1, provisioned = false } = options;
      return new ObjectBlobs(this, blobBucket, { replicas, provisioned });
    });
  }

  /**
   * The account may lack JetStream although the server has it. If the user may not ask, the check is skipped.
   * A cluster without a leader, and a server that is just starting or ending, have JetStream all the same:
   * those faults are transient.
   */
  async checkJetStream(options: BusOptions): Promise<void> {
    const answer = await this.#api.ask("INFO").catch((error: unknown) => {
      if (isDenied(error)) return undefined;
      throw error;
    });
    if (answer === undefined || answer.kind === "ok") return;
    const doing = "ask for JetStream";
    const fault = answer.kind === "nobody" ? unavailable(doing) : faultFrom(answer.error, doing);
    throw fault.code === "jetstream_disabled" ? jetStreamDisabled(options) : fault;
  }

  ensureStream(spec: StreamSpec): Promise<{ created: boolean }> {
    return this.#streams.ensure(spec);
  }

  deleteStream(name: string): Promise<boolean> {
    return this.#streams.delete(name);
  }

  streamInfo(name: string): Promise<StreamInfo | undefined> {
    return this.#streams.info(name);
  }

  streamNames(subjectFilter: string): Promise<string[]> {
    return this.#streams.names(subjectFilter);
  }

  streamCount(): Promise<number> {
    return this.#streams.count();
  }

  account(): Promise<AccountInfo> {
    return this.#streams.account();
  }

  publish(subject: string, body: Uint8Array, options?: PublishOptions): Promise<PublishOutcome> {
    return this.#publisher.publish(subject, body, options);
  }

  last(stream: string, subject: string, options?: { leader?: boolean }): Promise<StoredMessage | undefined> {
    return this.#reader.last(stream, subject, options?.leader === true);
  }

  read(
    stream: string,
    subject: string,
    fromSeq?: number,
    limit?: number,
  ): Promise<StoredMessage[] | undefined> {
    return this.#reader.read(stream, subject, fromSeq, limit);
  }

  lastPerSubject(stream: string, filter: string): AsyncIterable<StoredMessage> {
    return lastOfEach((options) => this.tail(stream, filter, options));
  }

  deleteMessage(stream: string, seq: number): Promise<boolean> {
    return this.#streams.deleteMessage(stream, seq);
  }

  purge(stream: string, filter: string, throughSeq: number): Promise<number> {
    return this.#streams.purge(stream, filter, throughSeq);
  }

  ensureConsumer(spec: ConsumerSpec): Promise<void> {
    return this.#consumers.ensure(spec);
  }

  deleteConsumer(stream: string, name: string): Promise<boolean> {
    return this.#consumers.delete(stream, name);
  }

  consumers(stream: string): Promise<ConsumerInfo[]> {
    return this.#consumers.list(stream);
  }

  consume(stream: string, consumer: string, options: ConsumeOptions): Promise<Consumption> {
    return this.#consumers.consume(stream, consumer, options);
  }

  next(
    stream: string,
    consumer: string,
    options: { expiresMs: number; signal?: AbortSignal },
  ): Promise<Delivery | undefined> {
    return this.#consumers.next(stream, consumer, options);
  }

  handBack(stream: string, consumer: string, seqs: readonly number[]): Promise<void> {
    return this.#consumers.handBack(stream, consumer, seqs);
  }

  async tail(stream: string, filter: string, options: TailOptions): Promise<Stoppable> {
    const tail = new Tail(this.#link, this.#api, this.#inboxPrefix, stream, filter, options);
    await tail.start();
    return tail;
  }

  send(subject: string, body: Uint8Array, headers?: Headers): void {
    if (!this.#link.connected) return; // A plain message may be lost.
    const wire = headers === undefined ? undefined : { headers: new WireHeaders().addAll(headers) };
    try {
      this.#link.publish(subject, body, wire);
    } catch (error) {
      throw refusedByClient(error, `send to ${subject}`);
    }
  }

  async request(
    subject: string,
    body: Uint8Array,
    options: { timeoutMs: number; headers?: Headers },
  ): Promise<Reply> {
    let left = options.timeoutMs;
    if (!this.#link.connected) {
      const since = performance.now();
      if (!(await this.#link.ready(left))) return { kind: "timeout" };
      left = Math.max(1, left - (performance.now() - since));
    }
    return this.#mux.request<Reply>(
      subject,
      body,
      options.headers === undefined ? undefined : new WireHeaders().addAll(options.headers),
      left,
      plainReplyHandler,
    );
  }

  async subscribe(
    subject: string,
    options: { queue?: string; unconfirmed?: boolean },
    onMessage: (message: CoreMessage) => void,
  ): Promise<Stoppable> {
    const subscription = this.#link.subscribe(subject, options.queue, (message) => {
      const { reply } = message;
      const { headers } = parseHeaders(message);
      if (!matches(subject, message.subject) || isStored(headers)) return; // SEC-8
      onMessage({
        subject: message.subject,
        headers,
        body: message.data,
        reply: reply && isInbox(reply) ? (body, headers) => this.send(reply, body, headers) : undefined,
      });
    });
    try {
      if (!options.unconfirmed) await this.#link.flush(); // The subscription is ready when the server has it.
    } catch (error) {
      subscription.unsubscribe(); // A caller that subscribes again must not receive every message twice.
      throw error;
    }
    return {
      stop: async () => {
        if (this.#link.closed || subscription.isClosed()) return;
        if (options.unconfirmed) {
          this.#link.cork();
          return subscription.unsubscribe();
        }
        await subscription.drain().catch(() => undefined); // Disconnected: the subscription is gone.
      },
    };
  }

  get maxPayloadBytes(): number {
    return this.#link.info.max_payload;
  }

  serverId(): string {
    return this.#link.info.server_id;
  }

  clustered(): boolean {
    return this.#link.clustered;
  }

  serverName(): string {
    return this.#link.info.server_name;
  }

  serverVersion(): string {
    return this.#link.info.version;
  }

  connected(): boolean {
    return this.#link.connected;
  }

  onState(listener: (state: BusState) => void): () => void {
    return this.#link.onState(listener);
  }

  flush(): Promise<void> {
    return this.#link.flush();
  }

  close(): Promise<void> {
    return this.#link.close();
  }
}

/**
 * SEC-4 An answer goes to an inbox and nowhere else: the requester names the reply subject, and this process
 * may publish to subjects that the requester may not. The server names the inbox of another account `_R_`.
 */
const isInbox = (subject: string): boolean => subject.startsWith("_INBOX") || subject.startsWith("_R_.");

/**
 * SEC-8 A subscriber takes what was published to it, and nothing that the server read from a stream. A consumer delivers a
 * stored message, with the subject that it was stored under, to whatever subject its maker names; a direct get answers
 * there with a stored message and the name of its stream.
 */
const isStored = (headers: Headers): boolean => headers[headerNames.storedStream] !== undefined;

const plainReplyHandler: ReplyHandler<Reply> = {
  ofReply: (reply) => {
    const { status, headers } = parseHeaders(reply);
    const nobody = status === 503 && reply.data.length === 0;
    return nobody ? { kind: "nobody" } : { kind: "reply", headers, body: reply.data };
  },
  ofFailure: (why, subject) => {
    if (why === "closed") throw busClosed(`request ${subject}`);
    return { kind: "timeout" };
  },
};

const isDenied = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "permission_denied";
