/**
 * A key-value bucket over the bus, in the format of NATS key-value stores (`nats kv` reads and writes it).
 *
 * BUCKET-1 Every write states its time to live; no operation drops a time to live silently.
 * BUCKET-2 Each write carries an id of its own, so an unknown outcome (BUS-1) is settled by reading whose
 *    value the key holds.
 * BUCKET-3 A deleted or expired entry is absent for readers and an event for watchers.
 */
import { type Random, systemRandom, token } from "../../runtime/index.ts";
import type { Bus, Headers, PublishOptions, Stoppable, StoredMessage } from "../bus.ts";
import { headerNames } from "../delivery/header-names.ts";
import { bucketStream, bucketSubject } from "../subjects.ts";

export interface Entry {
  key: string;
  revision: number;
  value: Uint8Array;
  /** Server time of the write, epoch ms. */
  at: number;
  headers: StoredMessage["headers"];
}

export type BucketEvent =
  | ({ kind: "put" } & Entry)
  | { kind: "deleted"; key: string; revision: number; at: number }
  | { kind: "expired"; key: string; revision: number; at: number };

export type WriteOutcome =
  | { kind: "written"; revision: number }
  /** The key holds another writer's value, or none, instead of the expected revision. */
  | { kind: "conflict" }
  /** The server did not answer, and reading the key did not settle the outcome either. */
  | { kind: "unknown" };

export interface WriteOptions {
  ttlMs?: number;
  headers?: Headers;
  timeoutMs?: number;
}

export interface CreateOptions extends WriteOptions {
  /** Called with the headers of a delete marker. If it returns true, the key is not created: `conflict`. */
  staysDeleted?: (marker: StoredMessage["headers"]) => boolean;
}

const operation = headerNames.kvOperation;
const writeId = headerNames.write;
const empty = new Uint8Array(0);
/** Sequences in the first page read backwards. */
const firstSpan = 512;
const mostAtOnce = 1000;

export class Bucket {
  readonly name: string;
  readonly stream: string;
  readonly #bus: Bus;
  readonly #writer: string;
  #writes = 0;

  constructor(bus: Bus, name: string, options: { random?: Random } = {}) {
    this.name = name;
    this.stream = bucketStream(name);
    this.#bus = bus;
    this.#writer = token(options.random ?? systemRandom, 12);
  }

  async get(key: string, options: { leader?: boolean } = {}): Promise<Entry | undefined> {
    const message = await this.#bus.last(this.stream, this.#subject(key), options);
    return message && absence(message) === undefined ? this.#entry(message) : undefined;
  }

  put(key: string, value: Uint8Array, options: WriteOptions = {}): Promise<WriteOutcome> {
    return this.#write(key, value, options);
  }

  /** Writes only if the key is absent: never written, deleted or expired. */
  async create(
    key: string,
    value: Uint8Array,
    { staysDeleted, ...options }: CreateOptions = {},
  ): Promise<WriteOutcome> {
    const first = await this.#write(key, value, { ...options, expectLastSeq: 0 });
    if (first.kind !== "conflict") return first;
    const there = await this.#bus.last(this.stream, this.#subject(key), { leader: true });
    if (there && (absence(there) === undefined || staysDeleted?.(there.headers))) return first;
    return this.#write(key, value, { ...options, expectLastSeq: there?.seq ?? 0 });
  }

  /** Writes only over this revision. Revision 0: only if the key is absent or carries a delete marker. */
  update(
    key: string,
    value: Uint8Array,
    revision: number,
    options: WriteOptions = {},
  ): Promise<WriteOutcome> {
    if (revision === 0) return this.create(key, value, options);
    return this.#write(key, value, { ...options, expectLastSeq: revision });
  }

  /** Leaves a delete marker; with `ttlMs` the server removes the marker after that time. */
  delete(key: string, options: WriteOptions & { revision?: number } = {}): Promise<WriteOutcome> {
    const { revision, ...rest } = options;
    return this.#write(key, empty, {
      ...rest,
      headers: { ...rest.headers, [operation]: "DEL" },
      ...(revision === undefined ? {} : { expectLastSeq: revision }),
    });
  }

  /** An entry that changes during the iteration is yielded again; the later value comes last. */
  async *entries(filter = ">"): AsyncGenerator<Entry, void, undefined> {
    for await (const message of this.#bus.lastPerSubject(this.stream, this.#subject(filter))) {
      if (absence(message) === undefined) yield this.#entry(message);
    }
  }

  /**
   * Passes the entries to `onPage` in pages, the page with the latest writes first, until it returns false or no more
   * are left. Entries written meanwhile follow in one last page, even after `onPage` returned false.
   */
  async latestFirst(onPage: (entries: Entry[]) => boolean): Promise<void> {
    const info = await this.#bus.streamInfo(this.stream);
    if (!info) return;
    let span = firstSpan;
    let below = info.lastSeq + 1;
    while (below > info.firstSeq) {
      const from = Math.max(info.firstSeq, below - span);
      const page = await this.#between(from, below);
      if (!onPage(page)) break;
      below = from;
      // Overwritten entries leave gaps: larger pages cross them with fewer requests.
      if (page.length < span / 2) span *= 2;
    }
    onPage(await this.#between(info.lastSeq + 1, Number.MAX_SAFE_INTEGER));
  }

  async #between(from: number, below: number): Promise<Entry[]> {
    const found: Entry[] = [];
    for (let at = from; at < below; ) {
      const messages = await this.#bus.read(
        this.stream,
        this.#subject(">"),
        at,
        Math.min(below - at, mostAtOnce),
      );
      for (const message of messages ?? []) {
        if (message.seq < below && absence(message) === undefined) found.push(this.#entry(message));
      }
      at = (messages?.at(-1)?.seq ?? below) + 1;
    }
    return found;
  }

  /** Reports every current entry, then every change. Deletions from before the start are not reported. */
  watch(
    filter: string,
    listener: { onEntry: (event: BucketEvent) => void; onCaughtUp?: () => void },
  ): Promise<Stoppable> {
    let caughtUp = false;
    return this.#bus.tail(this.stream, this.#subject(filter), {
      existing: true,
      onMessage: (message) => {
        const event = this.event(message);
        if (event.kind === "put" || caughtUp) listener.onEntry(event);
      },
      onCaughtUp: () => {
        caughtUp = true;
        listener.onCaughtUp?.();
      },
    });
  }

  /** Reads a message of the bucket's stream as an event, for callers that read the stream with a consumer. */
  event(message: StoredMessage): BucketEvent {
    const kind = absence(message);
    if (kind === undefined) return { kind: "put", ...this.#entry(message) };
    return { kind, key: this.#key(message), revision: message.seq, at: message.at };
  }

  async #write(key: string, value: Uint8Array, options: PublishOptions): Promise<WriteOutcome> {
    const id = `${this.#writer}-${this.#writes++}`;
    const subject = this.#subject(key);
    const { expectLastSeq, ttlMs, timeoutMs } = options;
    const headers = options.headers ? { ...options.headers, [writeId]: id } : { [writeId]: id };
    const publish = () => this.#bus.publish(subject, value, { headers, expectLastSeq, ttlMs, timeoutMs });
    const first = await publish();
    if (first.kind === "stored") return { kind: "written", revision: first.seq };
    if (first.kind === "conflict") return first;
    // BUCKET-2: the key holds our write, or another writer's, or no write yet; in the last case try once
    // more.
    const there = await this.#readBack(subject);
    if (there === "unknown") return { kind: "unknown" };
    if (there?.headers[writeId] === id) return { kind: "written", revision: there.seq };
    if (options.expectLastSeq !== undefined && (there?.seq ?? 0) !== options.expectLastSeq) {
      return { kind: "conflict" };
    }
    const second = await publish();
    if (second.kind === "stored") return { kind: "written", revision: second.seq };
    const now = await this.#readBack(subject);
    if (now !== "unknown" && now?.headers[writeId] === id) return { kind: "written", revision: now.seq };
    return second;
  }

  async #readBack(subject: string): Promise<StoredMessage | undefined | "unknown"> {
    try {
      return await this.#bus.last(this.stream, subject, { leader: true });
    } catch {
      return "unknown"; // The read was not answered either: the outcome is unknown.
    }
  }

  #subject(key: string): string {
    return bucketSubject(this.name, key);
  }

  #key(message: StoredMessage): string {
    return message.subject.slice(bucketSubject(this.name, "").length);
  }

  #entry(message: StoredMessage): Entry {
    const { seq, body, at, headers } = message;
    return { key: this.#key(message), revision: seq, value: body, at, headers };
  }
}

/** Why a bucket message is not a value; undefined if it is a value. */
function absence(message: StoredMessage): "deleted" | "expired" | undefined {
  const { headers } = message;
  if (headers[headerNames.markerReason] === "MaxAge") return "expired";
  if (headers[headerNames.markerReason] !== undefined || headers[operation] !== undefined) return "deleted";
  return undefined;
}
