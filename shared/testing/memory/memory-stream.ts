/**
 * One stream in memory: sequences, fences, windows, limits, expiry, schedules. Follows the server's rules.
 */
import type {
  ConsumerInfo,
  PublishOptions,
  PublishOutcome,
  Schedule,
  StoredMessage,
  StreamInfo,
  StreamSpec,
} from "../../bus/index.ts";
import { hasWildcard, headerNames, matches, scheduleHeader, scheduleText } from "../../bus/index.ts";
import { Fault } from "../../errors/index.ts";
import type { Clock, Timer } from "../../runtime/index.ts";
import type { TimerKind } from "../clock/simulated-clock.ts";
import type { Fate } from "./faults.ts";
import type { MemoryConsumer } from "./memory-consumer.ts";
import { transformed } from "./transform.ts";

export interface Kept extends StoredMessage {
  timers: Timer[];
}

/** Time of the broker: no timer fires while the broker is down. */
export interface ServerTime {
  clock: Clock;
  /** Message ids are remembered at most this long. */
  readonly dedupeMs: number;
  /** Runs `fn` after `ms`, or as soon as the broker is up again. */
  after(ms: number, fn: () => void, kind?: TimerKind): Timer;
}

const defaultDedupeMs = 120_000;

export class MemoryStream {
  readonly spec: StreamSpec;
  readonly consumers = new Map<string, MemoryConsumer>();
  /** Called at every new message; used by tails and consumers. */
  readonly listeners = new Set<() => void>();
  /** Called with each stored message, for streams that have this one as a source. */
  onStored: (message: Kept) => void = () => undefined;
  readonly #time: ServerTime;
  readonly #fate: Fate;
  readonly #messages = new Map<number, Kept>();
  readonly #bySubject = new Map<string, number[]>();
  readonly #seen = new Map<string, { seq: number; at: number }>();
  readonly #firstEver: number;
  #lastSeq: number;
  #bytes = 0;

  constructor(spec: StreamSpec, time: ServerTime, fate: Fate, firstSeq = 1) {
    this.spec = spec;
    this.#time = time;
    this.#fate = fate;
    this.#firstEver = firstSeq;
    this.#lastSeq = firstSeq - 1;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get firstSeq(): number {
    for (const seq of this.#messages.keys()) return seq;
    return this.#lastSeq === 0 ? 0 : this.#lastSeq + 1;
  }

  /** Number of messages ever stored, including those removed. */
  get everStored(): number {
    return this.#lastSeq - this.#firstEver + 1;
  }

  get size(): number {
    return this.#messages.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  stores(subject: string): boolean {
    return this.spec.subjects.some((filter) => matches(filter, subject));
  }

  publish(subject: string, body: Uint8Array, options: PublishOptions): PublishOutcome {
    this.#check(subject, options);
    const stored = transformed(this.spec.transform, subject);
    const now = this.#time.clock.now();
    // The fence is checked before the message id: a repeated append is a conflict, not a duplicate.
    if (options.expectLastSeq !== undefined && (this.lastSeqOf(stored) ?? 0) !== options.expectLastSeq) {
      return { kind: "conflict" };
    }
    if (options.msgId !== undefined) {
      const before = this.#seen.get(options.msgId);
      const windowMs = Math.min(this.spec.dedupeWindowMs ?? defaultDedupeMs, this.#time.dedupeMs);
      if (before && now - before.at < windowMs) {
        return { kind: "stored", seq: before.seq, duplicate: true };
      }
    }
    if (options.schedule || options.headers?.[headerNames.rollup] === "sub") this.#removeAll(stored);
    const kept = this.#store(stored, body, wireHeaders(options));
    if (options.msgId !== undefined) this.#seen.set(options.msgId, { seq: kept.seq, at: now });
    if (options.ttlMs !== undefined) this.#expire(kept, options.ttlMs);
    if (this.spec.maxAgeMs) this.#expire(kept, this.spec.maxAgeMs);
    if (options.schedule) this.#schedule(kept, options.schedule);
    this.#announce();
    this.onStored(kept);
    return { kind: "stored", seq: kept.seq, duplicate: false };
  }

  /** Stores a message without checking ids and limits: the source stream has accepted it already. */
  store(subject: string, { body, headers }: StoredMessage): void {
    this.#store(subject, body, { ...headers });
    this.#announce();
  }

  get(seq: number): StoredMessage | undefined {
    return this.#messages.get(seq);
  }

  lastSeqOf(subject: string): number | undefined {
    return this.#bySubject.get(subject)?.at(-1);
  }

  /** The leader's view. */
  last(subject: string): StoredMessage | undefined {
    if (hasWildcard(subject)) return this.read(subject, 0).at(-1);
    const seq = this.lastSeqOf(subject);
    return seq === undefined ? undefined : this.#messages.get(seq);
  }

  /** The leader's view. */
  read(filter: string, fromSeq: number): StoredMessage[] {
    const exact = this.#bySubject.get(filter);
    const seqs = exact ?? [...this.#messages.keys()];
    const found: StoredMessage[] = [];
    for (const seq of seqs) {
      const message = this.#messages.get(seq);
      if (seq >= fromSeq && message && (exact || matches(filter, message.subject))) found.push(message);
    }
    return found;
  }

  lastOfAny(subject: string): StoredMessage | undefined {
    return this.#lags ? this.readAny(subject, 0).at(-1) : this.last(subject);
  }

  readAny(filter: string, fromSeq: number): StoredMessage[] {
    const all = this.read(filter, fromSeq);
    if (!this.#lags) return all;
    const shownUntil = this.#time.clock.now() - this.#fate.within("replicaLagMs");
    // A replica has the leader's first messages without a gap, even if the server's clock was set back meanwhile.
    const missing = all.findIndex(({ at }) => at > shownUntil);
    return missing < 0 ? all : all.slice(0, missing);
  }

  /**
   * A lagging replica lacks the messages of the last moment. A real one also still has messages that the leader has
   * removed or replaced since; those are not kept here, so buckets do not lag.
   */
  get #lags(): boolean {
    const { replicas = 1, maxMsgsPerSubject } = this.spec;
    return replicas > 1 && maxMsgsPerSubject === undefined;
  }

  lastPerSubject(filter: string): StoredMessage[] {
    const found: StoredMessage[] = [];
    for (const [subject, seqs] of this.#bySubject) {
      const message = matches(filter, subject) ? this.#messages.get(seqs.at(-1) ?? 0) : undefined;
      if (message) found.push(message);
    }
    return found.sort((a, b) => a.seq - b.seq);
  }

  /** The first matching message at or after the sequence. */
  nextFrom(seq: number, filter: string): StoredMessage | undefined {
    for (let at = Math.max(seq, this.firstSeq); at <= this.#lastSeq; at++) {
      const message = this.#messages.get(at);
      if (message && matches(filter, message.subject)) return message;
    }
    return undefined;
  }

  remove(seq: number): boolean {
    const message = this.#messages.get(seq);
    if (!message) return false;
    for (const timer of message.timers) timer.cancel();
    this.#messages.delete(seq);
    this.#bytes -= message.body.length;
    const seqs = this.#bySubject.get(message.subject);
    if (seqs) {
      seqs.splice(seqs.indexOf(seq), 1);
      if (seqs.length === 0) this.#bySubject.delete(message.subject);
    }
    for (const consumer of this.consumers.values()) consumer.forget(seq);
    return true;
  }

  purge(filter: string, throughSeq: number): number {
    if (this.spec.immutable) throw new Fault("contract", { code: "immutable", message: "purge is denied" });
    const doomed = this.read(filter, 0).filter(({ seq }) => seq <= throughSeq);
    for (const message of doomed) this.remove(message.seq);
    return doomed.length;
  }

  close(): void {
    for (const seq of [...this.#messages.keys()]) this.remove(seq);
    for (const consumer of [...this.consumers.values()]) consumer.end();
    this.listeners.clear();
  }

  /** Drops what a restarted server has lost: volatile consumers, and the message ids of consumed messages. */
  forgetVolatile(): void {
    // A restarted server rebuilds its message ids from the stored messages.
    for (const [msgId, { seq }] of this.#seen) if (!this.#messages.has(seq)) this.#seen.delete(msgId);
    for (const consumer of [...this.consumers.values()]) if (consumer.spec.volatile) consumer.end();
  }

  info(seenAt: number): StreamInfo {
    const { name, subjects, replicas = 1, metadata = {} } = this.spec;
    const { size: messages, bytes, firstSeq, lastSeq } = this;
    const consumers = this.consumers.size;
    return { name, subjects, messages, bytes, firstSeq, lastSeq, consumers, replicas, metadata, seenAt };
  }

  infos(): ConsumerInfo[] {
    return [...this.consumers.values()].map((consumer) => consumer.info());
  }

  #check(subject: string, options: PublishOptions): void {
    const { ttlMs, schedule } = options;
    if (ttlMs !== undefined && this.spec.markerTtlMs === undefined && !this.spec.timesToLive) {
      throw new Fault("config", { code: "ttl_disabled", message: `${this.spec.name} has no times to live` });
    }
    if (schedule && (!this.spec.schedules || schedule.target === subject || !this.stores(schedule.target))) {
      throw new Fault("contract", { code: "invalid_schedule", message: `target ${schedule.target}` });
    }
  }

  #store(subject: string, body: Uint8Array, headers: Record<string, string>): Kept {
    const seq = ++this.#lastSeq;
    const kept: Kept = { subject, seq, at: this.#time.clock.now(), headers, body: body.slice(), timers: [] };
    this.#messages.set(seq, kept);
    this.#bytes += kept.body.length;
    const seqs = this.#bySubject.get(subject) ?? [];
    this.#bySubject.set(subject, seqs);
    seqs.push(seq);
    const { maxMsgsPerSubject, maxBytes } = this.spec;
    while (maxMsgsPerSubject !== undefined && seqs.length > maxMsgsPerSubject) this.remove(seqs[0] ?? 0);
    while (maxBytes !== undefined && this.#bytes > maxBytes && this.#messages.size > 1)
      this.remove(this.firstSeq);
    return kept;
  }

  /** Expiry of a subject's last message leaves a marker, which expires too. */
  #expire(kept: Kept, afterMs: number): void {
    const late = this.#fate.within("markerDelayMs");
    const expire = () => {
      const wasLast = this.lastSeqOf(kept.subject) === kept.seq;
      const isMarker =
        kept.headers[headerNames.markerReason] !== undefined ||
        kept.headers[headerNames.kvOperation] === "PURGE";
      if (!this.remove(kept.seq)) return;
      const { markerTtlMs } = this.spec;
      if (!wasLast || isMarker || markerTtlMs === undefined) return;
      const marker = this.#store(kept.subject, new Uint8Array(0), {
        [headerNames.markerReason]: "MaxAge",
        [headerNames.ttl]: `${markerTtlMs / 1000}s`,
      });
      this.#expire(marker, markerTtlMs);
      this.#announce();
    };
    kept.timers.push(this.#time.after(afterMs + late, expire, "upkeep"));
  }

  #schedule(kept: Kept, schedule: Schedule): void {
    const wait = Math.max(0, schedule.at - this.#time.clock.now()) + this.#fate.within("scheduleDelayMs");
    const fire = () => {
      if (!this.remove(kept.seq)) return;
      const headers: Record<string, string> = {};
      for (const [name, value] of Object.entries(kept.headers)) if (!own.has(name)) headers[name] = value;
      headers[headerNames.scheduler] = kept.subject;
      headers[headerNames.scheduleNext] = "purge";
      this.publish(schedule.target, kept.body, { headers, ttlMs: schedule.keptMs });
    };
    kept.timers.push(this.#time.after(wait, fire, "dated"));
  }

  #removeAll(subject: string): void {
    for (const seq of [...(this.#bySubject.get(subject) ?? [])]) this.remove(seq);
  }

  #announce(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

const own = new Set<string>([
  headerNames.messageId,
  headerNames.expectedLastSubjectSeq,
  headerNames.ttl,
  headerNames.schedule,
  headerNames.scheduleTarget,
  headerNames.scheduleTtl,
]);

function wireHeaders(options: PublishOptions): Record<string, string> {
  const headers: Record<string, string> = { ...options.headers };
  if (options.msgId !== undefined) headers[headerNames.messageId] = options.msgId;
  if (options.expectLastSeq !== undefined) {
    headers[headerNames.expectedLastSubjectSeq] = String(options.expectLastSeq);
  }
  if (options.ttlMs !== undefined) headers[headerNames.ttl] = `${options.ttlMs / 1000}s`;
  if (options.schedule) {
    headers[scheduleHeader] = scheduleText(options.schedule.at);
    headers[headerNames.scheduleTarget] = options.schedule.target;
    if (options.schedule.keptMs !== undefined)
      headers[headerNames.scheduleTtl] = `${options.schedule.keptMs / 1000}s`;
  }
  return headers;
}
