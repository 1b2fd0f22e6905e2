/**
 * A bucket whose values are JSON of one schema. Entries that do not fit are reported and skipped, never
 * thrown.
 */
import type { z } from "zod";
import type { Announce } from "../../runtime/index.ts";
import type { Stoppable } from "../bus.ts";
import { decode, encode } from "../codec.ts";
import type { Bucket, BucketEvent, CreateOptions, Entry, WriteOptions, WriteOutcome } from "./bucket.ts";

export type TypedEntry<T> = Omit<Entry, "value"> & { value: T };
export type TypedEvent<T> = ({ kind: "put" } & TypedEntry<T>) | Exclude<BucketEvent, { kind: "put" }>;

/** What a key holds; `unreadable` means that an entry exists which this version cannot read. */
type Lookup<T> =
  | { kind: "none" }
  | { kind: "entry"; entry: TypedEntry<T> }
  | { kind: "unreadable"; entry: Entry };

export class TypedBucket<T> {
  readonly bucket: Bucket;
  readonly #schema: z.ZodType<T>;
  readonly #announce: Announce;
  readonly #reported = new Map<string, number>();

  readonly #onUnreadable: ((entry: Entry) => void) | undefined;

  /** `onUnreadable` is called for each entry that does not fit, every time one is read. */
  constructor(
    bucket: Bucket,
    schema: z.ZodType<T>,
    announce: Announce,
    onUnreadable?: (entry: Entry) => void,
  ) {
    this.#onUnreadable = onUnreadable;
    this.bucket = bucket;
    this.#schema = schema;
    this.#announce = announce;
  }

  async get(key: string, options?: { leader?: boolean }): Promise<TypedEntry<T> | undefined> {
    const entry = await this.bucket.get(key, options);
    return entry && this.#parse(entry);
  }

  async look(key: string, options?: { leader?: boolean }): Promise<Lookup<T>> {
    const entry = await this.bucket.get(key, options);
    if (!entry) return { kind: "none" };
    const typed = this.#parse(entry);
    return typed ? { kind: "entry", entry: typed } : { kind: "unreadable", entry };
  }

  put(key: string, value: T, options?: WriteOptions): Promise<WriteOutcome> {
    return this.bucket.put(key, encode(value), options);
  }

  create(key: string, value: T, options?: CreateOptions): Promise<WriteOutcome> {
    return this.bucket.create(key, encode(value), options);
  }

  update(key: string, value: T, revision: number, options?: WriteOptions): Promise<WriteOutcome> {
    return this.bucket.update(key, encode(value), revision, options);
  }

  delete(key: string, options?: WriteOptions & { revision?: number }): Promise<WriteOutcome> {
    return this.bucket.delete(key, options);
  }

  async *entries(filter?: string): AsyncGenerator<TypedEntry<T>, void, undefined> {
    for await (const entry of this.bucket.entries(filter)) {
      const typed = this.#parse(entry);
      if (typed) yield typed;
    }
  }

  latestFirst(onPage: (entries: TypedEntry<T>[]) => boolean): Promise<void> {
    return this.bucket.latestFirst((page) => onPage(page.flatMap((entry) => this.#parse(entry) ?? [])));
  }

  watch(
    filter: string,
    listener: { onEntry: (event: TypedEvent<T>) => void; onCaughtUp?: () => void },
  ): Promise<Stoppable> {
    return this.bucket.watch(filter, {
      ...listener,
      onEntry: (event) => {
        if (event.kind !== "put") return listener.onEntry(event);
        const typed = this.#parse(event);
        if (typed) listener.onEntry({ kind: "put", ...typed });
      },
    });
  }

  #parse(entry: Entry): TypedEntry<T> | undefined {
    const { key, revision, at, headers } = entry;
    const decoded = decode(this.#schema, entry.value);
    if (decoded.kind === "ok") {
      this.#reported.delete(key);
      return { key, revision, at, headers, value: decoded.value };
    }
    if (this.#reported.get(key) !== revision) {
      this.#reported.set(key, revision);
      this.#announce({
        kind: "fault",
        where: `bucket ${this.bucket.name}`,
        code: "invalid_entry",
        message: `${key} at revision ${revision} is skipped: ${decoded.message}`,
      });
    }
    this.#onUnreadable?.(entry);
    return undefined;
  }
}
