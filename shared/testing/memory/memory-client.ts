/** The bus of one client of the broker. Tests can disconnect and kill it. */

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
} from "../../bus/index.ts";
import { overlap } from "../../bus/index.ts";
import { ObjectBlobs } from "../../bus/storage/blobs.ts";
import { Fault } from "../../errors/index.ts";
import { type Announce, silent, sleep } from "../../runtime/index.ts";
import { ClientState, type Direction, never } from "./client-state.ts";
import type { MemoryBroker } from "./memory-broker.ts";
import { MemoryConsumer } from "./memory-consumer.ts";
import { MemoryConsumption } from "./memory-consumption.ts";
import { MemoryPublisher, noStream } from "./memory-publisher.ts";
import type { MemoryStream } from "./memory-stream.ts";
import { MemoryTail, type TailOptions } from "./memory-tail.ts";
import type { Subscriber } from "./plain-messages.ts";

const unansweredMs = 5_000;

export interface MemoryBusOptions {
  blobBucket?: string;
  /** Replicas of the blob store; other streams state their own. */
  replicas?: number;
  announce?: Announce;
}

export class MemoryBus implements Bus {
  readonly blobs: BlobStore;
  readonly #broker: MemoryBroker;
  readonly #state: ClientState;
  readonly #publisher: MemoryPublisher;
  readonly #takings = new Set<MemoryConsumption>();
  readonly #tails = new Set<MemoryTail>();
  readonly #subscribers = new Set<Subscriber>();

  constructor(
    broker: MemoryBroker,
    { blobBucket = "blobs", replicas = 1, announce = silent }: MemoryBusOptions,
  ) {
    this.#broker = broker;
    this.#state = new ClientState(broker.clock, broker.fate, announce);
    this.#publisher = new MemoryPublisher(broker, this.#state);
    this.blobs = new ObjectBlobs(this, blobBucket, { replicas });
    if (!broker.isUp) this.#state.disconnect();
  }

  // for tests: cut off, hold, kill

  disconnect(): void {
    this.#state.disconnect();
  }

  reconnect(): void {
    if (this.#broker.isUp) this.#state.reconnect();
  }

  /** Traffic in this direction is held, in order, until it is let through; a waiting caller times out. */
  hold(direction: Direction): void {
    this.#state.hold(direction);
  }

  /** Traffic in this direction is lost, and neither side learns of it: half of the connection is dead. */
  lose(direction: Direction): void {
    this.#state.lose(direction);
  }

  letThrough(direction: Direction): void {
    this.#state.letThrough(direction);
  }

  /** Like kill -9: its deliveries are not given back, and its requests are never answered. */
  kill(): void {
    this.#state.kill();
    this.#drop();
  }

  get killed(): boolean {
    return this.#state.killed;
  }

  // storage

  ensureStream(spec: StreamSpec): Promise<{ created: boolean }> {
    return this.#state.ask(() => {
      this.#broker.requireRoomFor(spec);
      return { created: this.#broker.ensure(spec) !== undefined };
    });
  }

  deleteStream(name: string): Promise<boolean> {
    return this.#state.ask(() => this.#broker.delete(name));
  }

  streamInfo(name: string): Promise<StreamInfo | undefined> {
    return this.#askOf(name, () => this.#broker.streams.get(name)?.info(this.#broker.clock.now()));
  }

  streamNames(subjectFilter: string): Promise<string[]> {
    return this.#state.ask(() => this.#broker.overlapping([subjectFilter]).map((stream) => stream.spec.name));
  }

  streamCount(): Promise<number> {
    return this.#state.ask(() => this.#broker.streams.size);
  }

  account(): Promise<AccountInfo> {
    return this.#state.ask(() => this.#broker.account());
  }

  publish(subject: string, body: Uint8Array, options: PublishOptions = {}): Promise<PublishOutcome> {
    return this.#publisher.publish(subject, body, options);
  }

  last(
    stream: string,
    subject: string,
    { leader = false }: { leader?: boolean } = {},
  ): Promise<StoredMessage | undefined> {
    return this.#askOf(stream, () => {
      const found = this.#broker.streams.get(stream);
      return leader ? found?.last(subject) : found?.lastOfAny(subject);
    });
  }

  read(stream: string, subject: string, fromSeq = 1, limit?: number): Promise<StoredMessage[] | undefined> {
    return this.#askOf(stream, () =>
      this.#broker.streams.get(stream)?.readAny(subject, fromSeq).slice(0, limit),
    );
  }

  async *lastPerSubject(stream: string, filter: string): AsyncGenerator<StoredMessage, void, undefined> {
    yield* await this.#state.ask(() => this.#viewable(stream).lastPerSubject(filter));
  }

  deleteMessage(stream: string, seq: number): Promise<boolean> {
    return this.#state.ask(() => {
      const found = this.#broker.streams.get(stream);
      return found !== undefined && !found.spec.immutable && found.remove(seq);
    });
  }

  purge(stream: string, filter: string, throughSeq: number): Promise<number> {
    return this.#state.ask(() => this.#broker.streams.get(stream)?.purge(filter, throughSeq) ?? 0);
  }

  // delivery

  ensureConsumer(spec: ConsumerSpec): Promise<void> {
    return this.#state.ask(() => {
      const stream = this.#named(spec.stream);
      if (stream.consumers.has(spec.name)) return;
      const clash =
        stream.spec.retention === "workqueue" &&
        [...stream.consumers.values()].some((other) => overlap(other.spec.filter, spec.filter));
      if (clash) throw new Fault("bug", { code: "nats_error", message: "filters of a work queue overlap" });
      stream.consumers.set(spec.name, new MemoryConsumer(spec, stream, this.#broker, this.#broker.fate));
    });
  }

  deleteConsumer(stream: string, name: string): Promise<boolean> {
    return this.#state.ask(() => {
      const consumer = this.#broker.streams.get(stream)?.consumers.get(name);
      consumer?.end();
      return consumer !== undefined;
    });
  }

  consumers(stream: string): Promise<ConsumerInfo[]> {
    return this.#state.ask(() => this.#broker.streams.get(stream)?.infos() ?? []);
  }

  async consume(stream: string, consumer: string, options: ConsumeOptions): Promise<Consumption> {
    const found = await this.#state.ask(() => this.#consumer(stream, consumer));
    return this.#take(found, options);
  }

  handBack(stream: string, name: string, seqs: readonly number[]): Promise<void> {
    return this.#state.ask(() => {
      const consumer = this.#broker.streams.get(stream)?.consumers.get(name);
      for (const seq of seqs) consumer?.handBack(seq);
    });
  }

  async next(
    stream: string,
    consumer: string,
    options: { expiresMs: number; signal?: AbortSignal },
  ): Promise<Delivery | undefined> {
    if (options.signal?.aborted) return undefined;
    const found = await this.#state.ask(() => this.#consumer(stream, consumer));
    let delivery: Delivery | undefined;
    const taking: MemoryConsumption = this.#take(found, {
      maxMessages: 1,
      onMessage: (message) => {
        if (delivery !== undefined) return message.nak();
        delivery = message;
        stop();
      },
    });
    const stop = () => void taking.stop();
    const timer = this.#broker.clock.after(options.expiresMs, stop);
    options.signal?.addEventListener("abort", stop, { once: true });
    const how = await taking.ended;
    timer.cancel();
    options.signal?.removeEventListener("abort", stop);
    if (this.#state.killed) return never();
    if (how === "gone" && delivery === undefined) throw consumerGone(stream, consumer);
    return delivery;
  }

  async tail(stream: string, filter: string, options: TailOptions): Promise<Stoppable> {
    const { clock, fate, tails } = this.#broker;
    const tail = await this.#state.ask(
      () => new MemoryTail(this.#state, clock, fate, this.#viewable(stream), filter, options),
    );
    this.#tails.add(tail);
    tails.set(tail, stream);
    return {
      stop: async () => {
        this.#tails.delete(tail);
        tails.delete(tail);
        await tail.stop();
      },
    };
  }

  // plain messages

  send(subject: string, body: Uint8Array, headers: Headers = {}): void {
    this.#broker.plain.send(this.#state, subject, body, headers);
  }

  async request(
    subject: string,
    body: Uint8Array,
    options: { timeoutMs: number; headers?: Headers },
  ): Promise<Reply> {
    if (!(await this.#state.ready(options.timeoutMs))) return { kind: "timeout" };
    return this.#broker.plain.request(this.#state, subject, body, options);
  }

  async subscribe(
    subject: string,
    options: { queue?: string },
    onMessage: (message: CoreMessage) => void,
  ): Promise<Stoppable> {
    const subscriber: Subscriber = { client: this.#state, filter: subject, queue: options.queue, onMessage };
    await this.#state.ask(() => this.#broker.plain.subscribers.add(subscriber));
    this.#subscribers.add(subscriber);
    return {
      stop: async () => {
        this.#subscribers.delete(subscriber);
        this.#broker.plain.subscribers.delete(subscriber);
      },
    };
  }

  // connection

  get maxPayloadBytes(): number {
    return this.#broker.maxPayloadBytes;
  }

  serverId(): string {
    return this.#broker.serverId;
  }

  clustered(): boolean {
    return [...this.#broker.streams.values()].some(({ spec }) => (spec.replicas ?? 1) > 1);
  }

  serverName(): string {
    return "memory";
  }

  serverVersion(): string {
    return "2.15.0";
  }

  connected(): boolean {
    return this.#state.up;
  }

  onState(listener: (state: BusState) => void): () => void {
    return this.#state.onState(listener);
  }

  flush(): Promise<void> {
    return this.#state.ask(() => undefined);
  }

  async close(): Promise<void> {
    if (this.#state.over) return;
    await Promise.all([...this.#takings].map((taking) => taking.stop()));
    this.#drop();
    this.#state.close();
  }

  #drop(): void {
    for (const taking of this.#takings) taking.abandon();
    for (const tail of this.#tails) {
      this.#broker.tails.delete(tail);
      void tail.stop();
    }
    for (const subscriber of this.#subscribers) this.#broker.plain.subscribers.delete(subscriber);
    this.#takings.clear();
    this.#tails.clear();
    this.#subscribers.clear();
  }

  #take(consumer: MemoryConsumer, options: ConsumeOptions): MemoryConsumption {
    const taking = new MemoryConsumption(this.#state, consumer, options);
    this.#takings.add(taking);
    void taking.ended.then(() => this.#takings.delete(taking));
    return taking;
  }

  async #askOf<T>(stream: string, act: () => T): Promise<T> {
    if (!this.#broker.silent.has(stream)) return this.#state.ask(act);
    await sleep(this.#broker.clock, unansweredMs);
    return this.#state.killed ? never() : Promise.reject(this.#state.unavailable());
  }

  #named(name: string): MemoryStream {
    const stream = this.#broker.streams.get(name);
    if (!stream) throw noStream(name);
    return stream;
  }

  /** Work queues cannot be tailed: the server allows only explicit acknowledgements on them. */
  #viewable(name: string): MemoryStream {
    const stream = this.#named(name);
    if (stream.spec.retention === "limits") return stream;
    throw new Fault("bug", { code: "nats_error", message: `${name} is a work queue: it has no views` });
  }

  #consumer(stream: string, name: string): MemoryConsumer {
    const consumer = this.#broker.streams.get(stream)?.consumers.get(name);
    if (!consumer) throw consumerGone(stream, name);
    return consumer;
  }
}

const consumerGone = (stream: string, consumer: string): Fault =>
  new Fault("transient", {
    code: "consumer_gone",
    message: `consumer ${consumer} of ${stream} does not exist`,
  });
