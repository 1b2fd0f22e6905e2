/**
 * The seam to NATS. Everything the engine does on the wire goes through this interface; `nats-bus.ts` is the real one,
 * `shared/testing/memory/index.ts` its seeded twin, and both pass `test/conformance/bus.ts`.
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
  /** Messages may be schedules that publish to another subject of this stream later. */
  schedules?: boolean;
  /**
   * Its first sequence is the server's time of its creation (microseconds), so that sequences grow from one stream of a
   * name to the next: positions, epochs and sets of sequences from before mean nothing else after it was created anew.
   * Faster than a stream takes messages, and exact in a number until the year 2255.
   */
  sequencesByTime?: boolean;
  /** Purge and delete refused (append-only). Not together with schedules. */
  immutable?: boolean;
  dedupeWindowMs?: number;
  replicas?: number;
  metadata?: Record<string, string>;
}

export interface PublishOptions {
  /** De-duplicated by the server inside the stream's window. */
  msgId?: string;
  headers?: Headers;
  /** The fence: stored only if this is the subject's last sequence (0: none yet). */
  expectLastSeq?: number;
  /** Expires after this long; whole seconds, at least one. */
  ttlMs?: number;
  /** Store as a schedule: published to `target` at `at` (epoch ms, server clock). Same subject again replaces it. */
  schedule?: { at: number; target: string };
  timeoutMs?: number;
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
  /** Position among all deliveries of its consumer, from 1: a gap means that something was lost on the way. */
  order: number;
  ack(): void;
  /** Waits until the server has taken the acknowledgement. False: it was already settled. */
  ackSync(): Promise<boolean>;
  nak(delayMs?: number): void;
  /** Not dead, still at it: the redelivery clock starts anew. */
  working(): void;
  /** Kept for long, to be settled later: it takes no more room from what comes after it. */
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
  /** Removed by the server when nobody pulled for so long. */
  inactiveMs?: number;
  /** What it knows is kept in memory, which costs the server no files, and is gone with the server. */
  volatile?: boolean;
}

export interface Consumption {
  /** No more deliveries after this resolves. What was handed out may still be acknowledged. */
  stop(): Promise<void>;
  /** Resolves when it ended: `stopped` by us, or `gone` because the consumer or stream was deleted. */
  readonly ended: Promise<"stopped" | "gone">;
}

export interface CoreMessage {
  subject: string;
  headers: Headers;
  body: Uint8Array;
  /** Undefined where the sender does not wait for a reply. */
  reply: ((body: Uint8Array, headers?: Headers) => void) | undefined;
}

export type Reply =
  | { kind: "reply"; headers: Headers; body: Uint8Array }
  | { kind: "nobody" }
  | { kind: "timeout" };

export interface StreamInfo {
  name: string;
  messages: number;
  bytes: number;
  firstSeq: number;
  lastSeq: number;
  consumers: number;
  replicas: number;
  /** Of a cluster: the server that leads it, whose clock `seenAt` is. */
  leader?: string;
  /** A copy of it is away or far behind. */
  degraded?: boolean;
  /** Limits somebody set; absent where there is none. */
  maxBytes?: number;
  maxMessages?: number;
  /** What its creator noted on it. */
  metadata: Readonly<Record<string, string>>;
  /** Server time of this answer, epoch ms. */
  seenAt: number;
}

/** What the account uses of JetStream; a limit is absent where there is none. */
export interface AccountInfo {
  streams: number;
  consumers: number;
  bytes: number;
  maxStreams?: number;
  maxConsumers?: number;
  maxBytes?: number;
}

/** The clock of the server a client is connected to, compared with the client's own. */
export interface ServerTime {
  aheadMs: number;
  /** Half of the round trip it was measured with. */
  unsureMs: number;
}

export interface ConsumerInfo {
  stream: string;
  name: string;
  filter: string;
  pending: number;
  ackPending: number;
  redelivered: number;
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
  /** Streams whose subjects overlap the filter. */
  streamNames(subjectFilter: string): Promise<string[]>;
  /** All streams of the account; cheap. */
  streamCount(): Promise<number>;
  account(): Promise<AccountInfo>;
  publish(subject: string, body: Uint8Array, options?: PublishOptions): Promise<PublishOutcome>;
  /** Last message of a subject. `leader` reads one's own writes, the default may lag by a replica. */
  last(stream: string, subject: string, options?: { leader?: boolean }): Promise<StoredMessage | undefined>;
  /**
   * All messages of a subject (or filter) from a sequence on, in order. Undefined where there is no such stream.
   * `limit` is a hint: at least so many if there are so many, possibly more.
   */
  read(
    stream: string,
    subject: string,
    fromSeq?: number,
    limit?: number,
  ): Promise<StoredMessage[] | undefined>;
  /** The last message of each subject that matches, deletions and markers included. */
  lastPerSubject(stream: string, filter: string): AsyncIterable<StoredMessage>;
  /** False where there was nothing to delete. */
  deleteMessage(stream: string, seq: number): Promise<boolean>;
  /**
   * Number of messages removed. Only those up to `throughSeq`, which the caller saw before it decided: what is stored
   * while it was paused, for somebody who has the same subject now, stays.
   */
  purge(stream: string, filter: string, throughSeq: number): Promise<number>;

  // delivery
  ensureConsumer(spec: ConsumerSpec): Promise<void>;
  deleteConsumer(stream: string, name: string): Promise<boolean>;
  consumers(stream: string): Promise<ConsumerInfo[]>;
  /** Keeps up to `maxMessages` handed out and unsettled at a time flowing to `onMessage`, in stream order. */
  consume(
    stream: string,
    consumer: string,
    options: { maxMessages: number; onMessage: (message: Delivery) => void },
  ): Promise<Consumption>;
  /** One message, or undefined after `expiresMs` or when the signal aborts. Throws Fault `consumer_gone`. */
  next(
    stream: string,
    consumer: string,
    options: { expiresMs: number; signal?: AbortSignal },
  ): Promise<Delivery | undefined>;
  /** Live view without acknowledgements: existing last-per-subject messages first if asked, then everything new. Not of work queues. */
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
  /** Resolves when the server knows; `unconfirmed` saves that round trip where a later request will show it. */
  subscribe(
    subject: string,
    options: { queue?: string; unconfirmed?: boolean },
    onMessage: (message: CoreMessage) => void,
  ): Promise<Stoppable>;

  readonly blobs: BlobStore;

  // connection
  readonly maxPayloadBytes: number;
  /** Changes when the server was restarted (or another node answers). */
  serverId(): string;
  /** As configured; the same after a restart. */
  serverName(): string;
  serverVersion(): string;
  /** The server is one of several: streams may have copies, and a copy may lag. */
  clustered(): boolean;
  connected(): boolean;
  onState(listener: (state: BusState) => void): () => void;
  /** Waits until what was sent has reached the server. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface StoredBlob {
  key: string;
  /** Grows with every put and touch of the key. */
  seq: number;
}

export interface BlobStore {
  put(key: string, bytes: Uint8Array): Promise<void>;
  get(key: string): Promise<Uint8Array | undefined>;
  /** False where there is none. What is there counts as put now: who saw it before cannot delete it any more. */
  touch(key: string): Promise<boolean>;
  /** With `seenSeq`, only if it was not put or touched since it was listed. False where nothing was deleted. */
  delete(key: string, seenSeq?: number): Promise<boolean>;
  list(prefix: string): Promise<StoredBlob[]>;
}
