/**
 * Reads and writes the lease bucket: every write carries its claim id, so that a holder recognises its own.
 */
import type { Bus, PublishOutcome, StoredMessage } from "../bus/index.ts";
import { bucketStream, bucketSubject, headerNames, parseJson } from "../bus/index.ts";
import { isFault } from "../errors/index.ts";

const claimHeader = headerNames.claim;
/**
 * How long a released key keeps its tombstone, so that a late copy of a claim meets it; then the key is gone
 * without a trace.
 */
export const tombstoneTtlMs = 600_000;

/** `at` is the server's time of that write: shown to people, never used to decide. */
export type LeaseKeyState =
  | { kind: "none" }
  | { kind: "expired"; revision: number; at: number }
  | { kind: "released"; revision: number; at: number }
  | {
      kind: "held";
      revision: number;
      at: number;
      claimId: string | undefined;
      holder: string | undefined;
    };

interface LeaseWrite {
  key: string;
  claimId: string;
  /** The fence: the last known revision, 0 for a key never written. */
  expected: number;
  timeoutMs: number;
}

export class LeaseStore {
  readonly #bus: Bus;
  readonly #bucket: string;
  readonly #stream: string;

  constructor(bus: Bus, bucket: string) {
    this.#bus = bus;
    this.#bucket = bucket;
    this.#stream = bucketStream(bucket);
  }

  /** Never `kv.update`: it drops the TTL and makes the key immortal. */
  write(write: LeaseWrite & { body: Uint8Array; ttlMs: number }): Promise<PublishOutcome> {
    return this.#publish(write, write.body, write.ttlMs, { [claimHeader]: write.claimId });
  }

  remove(write: LeaseWrite): Promise<PublishOutcome> {
    // PURGE and not DEL: the server lets a PURGE age out without a marker, which would look like an expiry.
    const headers = { [claimHeader]: write.claimId, [headerNames.kvOperation]: "PURGE" };
    return this.#publish(write, new Uint8Array(), tombstoneTtlMs, headers);
  }

  async look(key: string): Promise<LeaseKeyState> {
    const last = await this.#bus.last(this.#stream, bucketSubject(this.#bucket, key), { leader: true });
    return last === undefined ? { kind: "none" } : readLease(last);
  }

  async #publish(
    { key, expected, timeoutMs }: LeaseWrite,
    body: Uint8Array,
    ttlMs: number,
    headers: Record<string, string>,
  ): Promise<PublishOutcome> {
    try {
      const subject = bucketSubject(this.#bucket, key);
      return await this.#bus.publish(subject, body, { ttlMs, expectLastSeq: expected, timeoutMs, headers });
    } catch (error) {
      // No leader or no connection: the outcome of this write is unknown, as without an answer.
      if (isFault(error, "transient")) return { kind: "unknown" };
      throw error;
    }
  }
}

/** Interprets the last message of a lease key. */
export function readLease(message: StoredMessage): LeaseKeyState {
  const { seq: revision, at } = message;
  if (isExpiry(message)) return { kind: "expired", revision, at };
  if (message.headers[headerNames.kvOperation] !== undefined) return { kind: "released", revision, at };
  return {
    kind: "held",
    revision,
    at,
    claimId: message.headers[claimHeader],
    holder: holderOf(message.body),
  };
}

/** Only an expiry writes this marker; a release never does. */
export const isExpiry = (message: Pick<StoredMessage, "headers">): boolean =>
  message.headers[headerNames.markerReason] === "MaxAge";

/** Checked by hand: the renewal thread should not load a schema library to show a name to people. */
function holderOf(body: Uint8Array): string | undefined {
  const parsed = parseJson(body);
  const value = parsed.kind === "ok" ? parsed.value : undefined;
  // The value is in an unknown format: the key is held all the same.
  if (typeof value !== "object" || value === null || !("holder" in value)) return undefined;
  return typeof value.holder === "string" ? value.holder : undefined;
}
