/**
 * One live view of a bucket for the whole process, however many pages are open. Messages of one key that
 * arrive within one interval are one change: only the last is parsed, so a thousand writes a second cost a
 * thousand map entries, not a thousand parses.
 */
import type { z } from "zod";
import {
  type Bus,
  bucketStream,
  bucketSubject,
  decode,
  headerNames,
  type Stoppable,
  type StoredMessage,
} from "../../../shared/bus/index.ts";

/** Undefined: the key is gone (deleted, purged or expired). */
export type KeyChange = { key: string; message: StoredMessage | undefined; at: number };

export class BucketTail {
  readonly #bus: Bus;
  readonly #bucket: string;
  readonly #pending = new Map<string, StoredMessage>();
  #tail: Stoppable | undefined;

  constructor(bus: Bus, bucket: string) {
    this.#bus = bus;
    this.#bucket = bucket;
  }

  /** Resolves when the present content of the bucket has been read. */
  async start(): Promise<void> {
    const prefix = bucketSubject(this.#bucket, "");
    let caughtUp: () => void = () => undefined;
    const ready = new Promise<void>((resolve) => {
      caughtUp = resolve;
    });
    this.#tail = await this.#bus.tail(bucketStream(this.#bucket), `${prefix}>`, {
      existing: true,
      onMessage: (message) => this.#pending.set(message.subject.slice(prefix.length), message),
      onCaughtUp: () => caughtUp(),
    });
    await ready;
  }

  async stop(): Promise<void> {
    await this.#tail?.stop();
    this.#tail = undefined;
  }

  /** Returns the changes since the last call. */
  popChanges(): KeyChange[] {
    const changes: KeyChange[] = [];
    for (const [key, message] of this.#pending) {
      changes.push({ key, message: isGone(message) ? undefined : message, at: message.at });
    }
    this.#pending.clear();
    return changes;
  }
}

function isGone(message: StoredMessage): boolean {
  const operation = message.headers[headerNames.kvOperation];
  return (
    operation === "DEL" || operation === "PURGE" || message.headers[headerNames.markerReason] !== undefined
  );
}

/** The parsed body; undefined if this version cannot read the entry, which is then not shown. */
export function parseBody<S extends z.ZodType>(schema: S, body: Uint8Array): z.output<S> | undefined {
  const decoded = decode(schema, body);
  return decoded.kind === "ok" ? decoded.value : undefined;
}
