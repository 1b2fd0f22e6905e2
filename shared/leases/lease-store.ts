/** The lease bucket on the wire: every write carries the claim it belongs to, so that a holder knows its own. */
import type { Bus, PublishOutcome, StoredMessage } from "../bus/bus.ts";
import { parseJson } from "../bus/codec.ts";
import { bucketStream, bucketSubject } from "../bus/subjects.ts";
import { isFault } from "../errors/index.ts";

const claimHeader = "Holdfast-Claim";
/** A released key says so this long, then it is gone without a trace: a late copy of a claim must find it. */
const tombstoneTtlMs = 600_000;

/** `at` is the server's time of that write: for people, never for deciding. */
export type Look =
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

export interface LeaseWrite {
  key: string;
  claimId: string;
  /** The fence: last revision known, 0 for a key never written. */
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
    // PURGE and not DEL: the server lets it age out without a marker, which would look like an expiry.
    const headers = { [claimHeader]: write.claimId, "KV-Operation": "PURGE" };
    return this.#publish(write, new Uint8Array(), tombstoneTtlMs, headers);
  }

  async look(key: string): Promise<Look> {
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
      // No leader, no connection: nothing is known about this write, as with one that was not answered.
      if (isFault(error, "transient")) return { kind: "unknown" };
      throw error;
    }
  }
}

/** What the last message of a lease key says. */
export function readLease(message: StoredMessage): Look {
  const { seq: revision, at } = message;
  if (isExpiry(message)) return { kind: "expired", revision, at };
  if (message.headers["KV-Operation"] !== undefined) return { kind: "released", revision, at };
  return {
    kind: "held",
    revision,
    at,
    claimId: message.headers[claimHeader],
    holder: holderOf(message.body),
  };
}

/** Only expiry writes this marker; a release never does. */
export const isExpiry = (message: Pick<StoredMessage, "headers">): boolean =>
  message.headers["Nats-Marker-Reason"] === "MaxAge";

/** Checked by hand: the thread that renews should not load a schema library to show a name to people. */
function holderOf(body: Uint8Array): string | undefined {
  const parsed = parseJson(body);
  const value = parsed.kind === "ok" ? parsed.value : undefined;
  // Somebody else's format: the key is held all the same.
  if (typeof value !== "object" || value === null || !("holder" in value)) return undefined;
  return typeof value.holder === "string" ? value.holder : undefined;
}
