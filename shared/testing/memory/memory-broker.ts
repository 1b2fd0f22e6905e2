/** The broker all clients share. It can go down and come back, as a server that was killed: storage stays, time does not. */
import type { StreamSpec } from "../../bus/bus.ts";
import { type Random, seededRandom, systemClock, type Timer } from "../../runtime/index.ts";
import type { SkippingClock, TimerKind } from "../clock/simulated-clock.ts";
import { type BusFaults, Fate, noFaults } from "./faults.ts";
import { MemoryBus, type MemoryBusOptions } from "./memory-client.ts";
import { MemoryStream, type ServerTime } from "./memory-stream.ts";
import type { MemoryTail } from "./memory-tail.ts";
import { PlainMessages } from "./plain-messages.ts";
import { overlap } from "./subject-match.ts";

export interface MemoryBrokerOptions {
  clock?: SkippingClock;
  seed?: number;
  faults?: Partial<BusFaults>;
  maxPayloadBytes?: number;
  /** The account's limit. */
  maxStreams?: number;
}

export class MemoryBroker implements ServerTime {
  readonly clock: SkippingClock;
  readonly random: Random;
  readonly fate: Fate;
  readonly plain: PlainMessages;
  readonly maxPayloadBytes: number;
  readonly maxStreams: number | undefined;
  readonly streams = new Map<string, MemoryStream>();
  /** Streams for which nobody answers, as those without a quorum; what is published to them is not stored. */
  readonly silent = new Set<string>();
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

  /** Everybody is disconnected; what falls due meanwhile waits. */
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

  ensure(spec: StreamSpec): MemoryStream | undefined {
    if (this.streams.has(spec.name)) return undefined;
    const firstSeq = spec.sequencesByTime ? this.#firstSeqNow() : 1;
    const stream = new MemoryStream(spec, this, this.fate, firstSeq);
    this.streams.set(spec.name, stream);
    for (const [tail, name] of this.tails) if (name === spec.name) tail.follow(stream);
    return stream;
  }

  /** Virtual time may stand still while messages are stored, which no real server's does. */
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
    for (const stream of this.streams.values()) if (stream.takes(subject)) return stream;
    return undefined;
  }

  overlapping(subjects: readonly string[]): MemoryStream[] {
    return [...this.streams.values()].filter((stream) =>
      stream.spec.subjects.some((one) => subjects.some((other) => overlap(one, other))),
    );
  }
}
