/**
 * The broker that all clients share. It can stop and start again like a killed server: it keeps its storage,
 * and schedules and expiries wait while it is down.
 */

import type { AccountInfo, StoredMessage, StreamSpec } from "../../bus/index.ts";
import { matches, overlap } from "../../bus/index.ts";
import { Fault } from "../../errors/index.ts";
import { type Random, seededRandom, systemClock, type Timer } from "../../runtime/index.ts";
import type { SkippingClock, TimerKind } from "../clock/simulated-clock.ts";
import { type BusFaults, Fate, noFaults } from "./faults.ts";
import { MemoryBus, type MemoryBusOptions } from "./memory-client.ts";
import { MemoryStream, type ServerTime } from "./memory-stream.ts";
import type { MemoryTail } from "./memory-tail.ts";
import { PlainMessages } from "./plain-messages.ts";
import { transformed } from "./transform.ts";

interface MemoryBrokerOptions {
  clock?: SkippingClock;
  seed?: number;
  faults?: Partial<BusFaults>;
  maxPayloadBytes?: number;
  /** Message ids are remembered at most this long. Default: the window of each stream. */
  dedupeMs?: number | undefined;
  /** The account's limit of streams. */
  maxStreams?: number;
}

export class MemoryBroker implements ServerTime {
  readonly clock: SkippingClock;
  readonly random: Random;
  readonly fate: Fate;
  readonly plain: PlainMessages;
  readonly maxPayloadBytes: number;
  readonly maxStreams: number | undefined;
  readonly dedupeMs: number;
  readonly streams = new Map<string, MemoryStream>();
  /** Streams that do not answer, like those without a quorum; messages published to them are not stored. */
  readonly silent = new Set<string>();
  /** Every write is refused, as by an account at its limit or a full disk. */
  storageFull = false;
  readonly tails = new Map<MemoryTail, string>();
  readonly #clients = new Set<MemoryBus>();
  #overdue: (() => void)[] | undefined;
  #incarnation = 1;
  #deletedLastSeq = 0;

  constructor(options: MemoryBrokerOptions = {}) {
    this.clock = options.clock ?? systemClock;
    this.random = seededRandom(options.seed ?? 1);
    this.fate = new Fate(this.random, { ...noFaults, ...options.faults });
    this.plain = new PlainMessages(this.clock, this.fate);
    this.maxPayloadBytes = options.maxPayloadBytes ?? 1024 * 1024;
    this.maxStreams = options.maxStreams;
    this.dedupeMs = options.dedupeMs ?? Number.POSITIVE_INFINITY;
  }

  connect(options: MemoryBusOptions = {}): MemoryBus {
    const client = new MemoryBus(this, options);
    this.#clients.add(client);
    return client;
  }

  get serverId(): string {
    return `memory-${this.#incarnation}`;
  }

  get isUp(): boolean {
    return this.#overdue === undefined;
  }

  /** Disconnects every client; timers of the server that become due wait until it is started. */
  stop(): void {
    this.#overdue ??= [];
    for (const client of this.#clients) client.disconnect();
  }

  start(): void {
    const overdue = this.#overdue;
    if (!overdue) return;
    this.#overdue = undefined;
    this.#incarnation++;
    for (const client of this.#clients) client.reconnect();
    for (const stream of this.streams.values()) stream.forgetVolatile();
    for (const act of overdue) act();
  }

  after(ms: number, fn: () => void, kind?: TimerKind): Timer {
    let cancelled = false;
    const act = () => {
      if (cancelled) return;
      if (this.#overdue) this.#overdue.push(act);
      else fn();
    };
    const timer = this.clock.after(ms, act, kind);
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  /** Throws if a server would refuse to make this stream. */
  requireRoomFor({ name, subjects, retention, transform }: StreamSpec): void {
    const other = this.overlapping(subjects).find(({ spec }) => spec.name !== name);
    if (other) throw new Fault("config", { code: "subjects_taken", message: `${name}: ${other.spec.name}` });
    const there = this.streams.get(name)?.spec;
    if (there && (there.retention !== retention || there.transform?.to !== transform?.to))
      throw new Fault("config", { code: "stream_mismatch", message: `stream ${name} exists otherwise` });
    const { streams, maxStreams } = this;
    if (!there && maxStreams !== undefined && streams.size >= maxStreams)
      throw new Fault("transient", { code: "too_many_streams", message: `${name}: ${maxStreams}` });
  }

  account(): AccountInfo {
    const streams = [...this.streams.values()];
    const sum = (of: (stream: MemoryStream) => number) =>
      streams.reduce((total, stream) => total + of(stream), 0);
    return {
      streams: streams.length,
      consumers: sum((stream) => stream.consumers.size),
      bytes: sum((stream) => stream.bytes),
      ...(this.maxStreams === undefined ? {} : { maxStreams: this.maxStreams }),
    };
  }

  ensure(spec: StreamSpec): MemoryStream | undefined {
    if (this.streams.has(spec.name)) return undefined;
    const firstSeq = spec.sequencesByTime ? this.#firstSeqNow() : 1;
    const stream = new MemoryStream(spec, this, this.fate, firstSeq);
    this.streams.set(spec.name, stream);
    stream.onStored = (message) => this.#forward(spec.name, message);
    for (const [tail, name] of this.tails) if (name === spec.name) tail.follow(stream);
    return stream;
  }

  /** Copies a stored message into the streams that have this one as a source. */
  #forward(from: string, message: StoredMessage): void {
    for (const stream of this.streams.values()) {
      const source = stream.spec.sources?.find((one) => one.stream === from);
      if (source && matches(source.from, message.subject))
        stream.store(transformed(source, message.subject), message);
    }
  }

  /**
   * Higher than every sequence of deleted streams: virtual time may stand still while messages are stored.
   */
  #firstSeqNow(): number {
    return Math.max(1, Math.floor(this.clock.now() * 1_000), this.#deletedLastSeq + 1);
  }

  delete(name: string): boolean {
    const stream = this.streams.get(name);
    this.#deletedLastSeq = Math.max(this.#deletedLastSeq, stream?.lastSeq ?? 0);
    this.streams.delete(name);
    stream?.close();
    return stream !== undefined;
  }

  streamFor(subject: string): MemoryStream | undefined {
    for (const stream of this.streams.values()) if (stream.stores(subject)) return stream;
    return undefined;
  }

  overlapping(subjects: readonly string[]): MemoryStream[] {
    return [...this.streams.values()].filter((stream) =>
      stream.spec.subjects.some((one) => subjects.some((other) => overlap(one, other))),
    );
  }
}
