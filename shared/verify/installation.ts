/** The installation as the checker reads it: streams and buckets, in pages. Nothing is written. */
import type { z } from "zod";
import { InstanceSummary, SessionRecord, WorkerInfo } from "../../schemas/index.ts";
import {
  type BucketName,
  type Bus,
  bucketStream,
  bucketSubject,
  decode,
  headerNames,
  leaseKeys,
  type StoredMessage,
  type Subjects,
} from "../bus/index.ts";
import { HistoryReader } from "../history/index.ts";
import { isExpiry } from "../leases/index.ts";
import type { Clock } from "../runtime/index.ts";

const pageSize = 500;

export interface InstallationOptions {
  bus: Bus;
  names: Subjects;
  clock: Clock;
}

export class Installation {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly clock: Clock;
  readonly histories: HistoryReader;
  readonly shards: number;

  private constructor({ bus, names, clock }: InstallationOptions, shards: number) {
    this.bus = bus;
    this.names = names;
    this.clock = clock;
    this.shards = shards;
    this.histories = new HistoryReader(bus, names, shards);
  }

  /** Undefined if no engine ever ran under this prefix. */
  static async open(options: InstallationOptions): Promise<Installation | undefined> {
    const info = await options.bus.streamInfo(options.names.sharedHistoryStream(0));
    return info && new Installation(options, Number(info.metadata.shards ?? 1));
  }

  /** The server's clock, which dates everything that is read. */
  async now(): Promise<number> {
    const info = await this.bus.streamInfo(this.names.sharedHistoryStream(0));
    return info?.seenAt ?? this.clock.now();
  }

  /** All matching messages of a stream, in order, up to the last one at the time of the call. */
  async *messages(stream: string, filter = ">"): AsyncGenerator<StoredMessage, void, undefined> {
    const last = (await this.bus.streamInfo(stream))?.lastSeq ?? 0;
    let from = 1;
    while (from <= last) {
      const page = (await this.bus.read(stream, filter, from, pageSize)) ?? [];
      for (const message of page) {
        if (message.seq > last) return;
        yield message;
      }
      const end = page.at(-1);
      if (!end) return;
      from = end.seq + 1;
    }
  }

  /** The entries of a bucket, including deleted and expired ones; see the message's headers. */
  async *entries(
    bucket: BucketName,
    filter = ">",
  ): AsyncGenerator<{ key: string; message: StoredMessage }, void, undefined> {
    const name = this.names.bucket(bucket);
    const start = bucketSubject(name, "").length;
    for await (const message of this.messages(bucketStream(name), bucketSubject(name, filter)))
      yield { key: message.subject.slice(start), message };
  }

  summary(instanceId: string): Promise<Entry<InstanceSummary>> {
    return this.#entry("instances", instanceId, InstanceSummary);
  }

  session(sessionId: string): Promise<Entry<SessionRecord>> {
    return this.#entry("sessions", sessionId, SessionRecord);
  }

  lease(key: string): Promise<StoredMessage | undefined> {
    const name = this.names.bucket("leases");
    return this.bus.last(bucketStream(name), bucketSubject(name, key), { leader: true });
  }

  /**
   * Server time at which this attachment's lease expired; undefined if it did not, or if its marker is gone.
   */
  async expiry(sessionId: string, attachment: number): Promise<number | undefined> {
    const message = await this.lease(leaseKeys.session(sessionId, attachment));
    return message && isExpiry(message) ? message.at : undefined;
  }

  async workers(): Promise<WorkerInfo[]> {
    const found: WorkerInfo[] = [];
    for await (const { message } of this.entries("workers")) {
      const entry = readEntry(WorkerInfo, message);
      if (entry.kind === "entry") found.push(entry.value);
    }
    return found;
  }

  async #entry<T>(bucket: BucketName, key: string, schema: z.ZodType<T>): Promise<Entry<T>> {
    const name = this.names.bucket(bucket);
    const message = await this.bus.last(bucketStream(name), bucketSubject(name, key), { leader: true });
    return message ? readEntry(schema, message) : { kind: "none" };
  }
}

export type Entry<T> =
  | { kind: "none" }
  | { kind: "entry"; value: T; at: number }
  | { kind: "unreadable"; why: string };

function readEntry<T>(schema: z.ZodType<T>, message: StoredMessage): Entry<T> {
  if (isGone(message)) return { kind: "none" };
  const decoded = decode(schema, message.body);
  return decoded.kind === "ok"
    ? { kind: "entry", value: decoded.value, at: message.at }
    : { kind: "unreadable", why: decoded.message };
}

/** True if the entry was deleted or has expired. */
export const isGone = ({ headers }: StoredMessage): boolean =>
  headers[headerNames.kvOperation] !== undefined || headers[headerNames.markerReason] !== undefined;
