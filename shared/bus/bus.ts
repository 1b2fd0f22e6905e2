/**
 * The interface to NATS. Everything the engine does on the wire goes through it; `nats-bus.ts` is the real
 * implementation, `shared/testing/memory/index.ts` its seeded in-memory twin, and both pass
 * `test/conformance/bus.ts`.
 *
 * BUS-1 A publish that was not answered is `unknown`, never failed: it may have been stored.
 * BUS-2 Streams are the only storage; buckets are streams read by their last message per subject.
 * BUS-3 Deliveries are at least once. An acknowledged work-queue message is gone.
 * BUS-4 Server errors are translated here, by code, into outcomes or a Fault of kind `transient` or `config`.
 */

export type Headers = Readonly<Record<string, string>>;

export interface StreamSpec {
  name: string;
  subjects: string[];
  retention: "limits" | "workqueue";
  /** Subject transform applied by the server on arrival. */
  transform?: { from: string; to: string };
  maxMsgsPerSubject?: number;
  maxAgeMs?: number;
  maxBytes?: number;
  /** Messages may carry a time to live; expiry leaves a marker kept this long. */
  markerTtlMs?: number;
  /** Messages may carry a time to live; an expired message leaves no marker. */
  timesToLive?: boolean;
  /** The server copies messages of these other streams into this one, under another subject. */
  sources?: { stream: string; from: string; to: string }[];
  /** Messages may be schedules that publish to another subject of this stream later. */
  schedules?: boolean;
  /**
   * The stream's first sequence is the server's time of its creation, in microseconds. A stream that is
   * deleted and created again therefore never reuses a sequence: stored positions, epochs and sets of
   * sequences stay unambiguous. Time in microseconds grows faster than a stream takes messages, and is exact
   * in a number until the year 2255.
   */
  sequencesByTime?: boolean;
  /** The server refuses purge and delete (append-only). Cannot be combined with `schedules`. */
  immutable?: boolean;
  dedupeWindowMs?: number;
  replicas?: number;
  metadata?: Record<string, string>;
}

export interface PublishOptions {
  /** De-duplicated by the server inside the stream's window. */
  msgId?: string;
  headers?: Headers;
  /**
   * The fence: the server stores the message only if this is the subject's last sequence (0: the subject is
   * empty).
   */
  expectLastSeq?: number;
  /** The message expires after this long; whole seconds, at least one. */
  ttlMs?: number;
  /**
   * Stores the message as a schedule: the server publishes it to `target` at `at` (epoch ms, server clock).
   * Another schedule on the same subject replaces it.
   */
  schedule?: Schedule;
  timeoutMs?: number;
}

export interface Schedule {
  at: number;
  target: string;
  /** How long the published message is kept. Undefined: as long as the stream keeps messages. */
  keptMs?: number | undefined;
}

export type PublishOutcome =
  | { kind: "stored"; seq: number; duplicate: boolean }
  | { kind: "conflict" }
  | { kind: "unknown" };

export interface StoredMessage {
  subject: string;
  seq: number;
  /** Server time of storage, epoch ms. */
  at: number;
  headers: Headers;
  body: Uint8Array;
}

export interface Delivery extends StoredMessage {
  /** 1 for the first delivery. */
  deliveries: number;
  /**
   * Position among all deliveries of its consumer, from 1: a gap means that a delivery was lost on the way.
   */
  order: number;
  ack(): void;
  /** Waits until the server has taken the acknowledgement. False: the delivery was already settled. */
  ackSync(): Promise<boolean>;
  nak(delayMs?: number): void;
  /** Tells the server that the message is still being worked on: its redelivery clock starts anew. */
  working(): void;
  /**
   * The delivery will be settled much later: it no longer counts against the consumer's limit of unsettled
   * messages.
   */
  putAside(): void;
}

export interface ConsumerSpec {
  stream: string;
  /** Durable name. */
  name: string;
  filter: string;
  ackWaitMs: number;
  maxAckPending?: number;
  headersOnly?: boolean;
  /** The server removes the consumer if no client has pulled from it for this long. */
  inactiveMs?: number;
  /**
   * The server keeps the consumer's state in memory: no files, but the state is lost when the server
   * restarts.
   */
  volatile?: boolean;
}

export interface ConsumeOptions {
  maxMessages: number;
  onMessage: (message: Delivery) => void;
  /**
   * Called about a second after the last delivery, with the number of all deliveries that the server has sent. If it is
   * higher than the `order` of the last delivery received, a delivery was lost.
   */
  onIdle?: (deliveries: number) => void;
}

export interface Consumption {
  /** No message is delivered after this resolves. Deliveries handed out before may still be acknowledged. */
  stop(): Promise<void>;
  /**
   * Resolves when the consumption ended: `stopped` by us, or `gone` because the consumer or stream was
   * deleted.
   */
  readonly ended: Promise<"stopped" | "gone">;
}

export interface CoreMessage {
  subject: string;
  headers: Headers;
  body: Uint8Array;
  /** Undefined if the sender does not wait for a reply. */
  reply: ((body: Uint8Array, headers?: Headers) => void) | undefined;
}

export type Reply =
  | { kind: "reply"; headers: Headers; body: Uint8Array }
  | { kind: "nobody" }
  | { kind: "timeout" };

export interface StreamInfo {
  name: string;
  /** The subjects it stores. */
  subjects: readonly string[];
  messages: number;
  bytes: number;
  firstSeq: number;
  lastSeq: number;
  consumers: number;
  replicas: number;
  /** In a cluster: the server that leads the stream; `seenAt` is by its clock. */
  leader?: string;
  /** True if a replica of the stream is offline or far behind. */
  degraded?: boolean;
  /** Limits that an operator set; undefined without a limit. */
  maxBytes?: number;
  maxMessages?: number;
  /** Metadata written by the stream's creator. */
  metadata: Readonly<Record<string, string>>;
  /** Server time of this answer, epoch ms. */
  seenAt: number;
}

/** What the account uses of JetStream; a limit is undefined if the account has none. */
export interface AccountInfo {
  streams: number;
  consumers: number;
  bytes: number;
  maxStreams?: number;
  maxConsumers?: number;
  maxBytes?: number;
}

export interface ConsumerInfo {
  stream: string;
  name: string;
  filter: string;
  pending: number;
  ackPending: number;
  redelivered: number;
  /**
   * Every message up to `settledSeq` is settled; every message up to the other sequence was delivered at
   * least once.
   */
  settledSeq: number;
  handedOutSeq: number;
}

export type BusState =
  | { kind: "connected" }
  | { kind: "disconnected" }
  | { kind: "reconnected"; awayMs: number };

export interface Stoppable {
  stop(): Promise<void>;
}

export interface Bus {
  // storage
  ensureStream(spec: StreamSpec): Promise<{ created: boolean }>;
  deleteStream(name: string): Promise<boolean>;
  streamInfo(name: string): Promise<StreamInfo | undefined>;
  /** Names of the streams whose subjects overlap the filter. */
  streamNames(subjectFilter: string): Promise<string[]>;
  /** Number of streams in the account; a cheap request. */
  streamCount(): Promise<number>;
  account(): Promise<AccountInfo>;
  publish(subject: string, body: Uint8Array, options?: PublishOptions): Promise<PublishOutcome>;
  /**
   * Last message of a subject. With `leader` a client reads its own writes; by default a lagging replica may
   * answer.
   */
  last(stream: string, subject: string, options?: { leader?: boolean }): Promise<StoredMessage | undefined>;
  /**
   * All messages of a subject (or filter) from a sequence on, in order. Undefined if the stream does not
   * exist. `limit` is a hint: the answer has at least this many messages if they exist, possibly more.
   */
  read(
    stream: string,
    subject: string,
    fromSeq?: number,
    limit?: number,
  ): Promise<StoredMessage[] | undefined>;
  /** The last message of each subject that matches, deletions and markers included. */
  lastPerSubject(stream: string, filter: string): AsyncIterable<StoredMessage>;
  /** False if there was no such message. */
  deleteMessage(stream: string, seq: number): Promise<boolean>;
  /**
   * Returns the number of messages removed. Removes only messages up to `throughSeq`, the last one the caller
   * saw before it decided: messages stored later, for a new user of the same subject, stay.
   */
  purge(stream: string, filter: string, throughSeq: number): Promise<number>;

  // delivery
  ensureConsumer(spec: ConsumerSpec): Promise<void>;
  deleteConsumer(stream: string, name: string): Promise<boolean>;
  consumers(stream: string): Promise<ConsumerInfo[]>;
  /** Delivers messages to `onMessage` in stream order, with at most `maxMessages` unsettled at a time. */
  consume(stream: string, consumer: string, options: ConsumeOptions): Promise<Consumption>;
  /**
   * Returns one message, or undefined after `expiresMs` or when the signal aborts. Throws Fault
   * `consumer_gone`.
   */
  next(
    stream: string,
    consumer: string,
    options: { expiresMs: number; signal?: AbortSignal },
  ): Promise<Delivery | undefined>;
  /**
   * Makes the server redeliver at once messages that are with a dead client. Messages that are settled or
   * were never delivered are not affected.
   */
  handBack(stream: string, consumer: string, seqs: readonly number[]): Promise<void>;
  /**
   * A live view without acknowledgements: the existing last message of each subject first if asked for, then
   * every new message. Not for work queues.
   */
  tail(
    stream: string,
    filter: string,
    options: { existing: boolean; onMessage: (message: StoredMessage) => void; onCaughtUp?: () => void },
  ): Promise<Stoppable>;

  // plain messages
  send(subject: string, body: Uint8Array, headers?: Headers): void;
  request(
    subject: string,
    body: Uint8Array,
    options: { timeoutMs: number; headers?: Headers },
  ): Promise<Reply>;
  /**
   * Resolves when the server has the subscription; `unconfirmed` saves that round trip if a later request
   * confirms it.
   */
  subscribe(
    subject: string,
    options: { queue?: string; unconfirmed?: boolean },
    onMessage: (message: CoreMessage) => void,
  ): Promise<Stoppable>;

  readonly blobs: BlobStore;

  // connection
  readonly maxPayloadBytes: number;
  /** Changes when the server was restarted (or another node of the cluster answers). */
  serverId(): string;
  /** The configured name; a restart does not change it. */
  serverName(): string;
  serverVersion(): string;
  /** True if the server is part of a cluster: streams may have replicas, and a replica may lag. */
  clustered(): boolean;
  connected(): boolean;
  onState(listener: (state: BusState) => void): () => void;
  /** Waits until every sent message has reached the server. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface StoredBlob {
  key: string;
  /** Grows with every put and touch of the key. */
  seq: number;
  /** Time of the latest put or touch, by the server's clock. */
  at: number;
}

export interface BlobStore {
  put(key: string, bytes: Uint8Array): Promise<void>;
  get(key: string): Promise<Uint8Array | undefined>;
  /**
   * Marks the blob as put now, so that a caller that listed it earlier cannot delete it. False if there is no
   * blob.
   */
  touch(key: string): Promise<boolean>;
  /**
   * With `seenSeq`, deletes only if the blob was not put or touched since it was listed. False if nothing was
   * deleted.
   */
  delete(key: string, seenSeq?: number): Promise<boolean>;
  list(prefix: string): Promise<StoredBlob[]>;
}
