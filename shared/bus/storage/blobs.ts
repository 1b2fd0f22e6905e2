/**
 * Blobs in a JetStream object store, in its documented format (`nats object` reads and writes them). Blobs
 * are read by direct gets, which survive a reconnect; the client library reads them with a consumer, which
 * stalls after one.
 */
import { createHash, randomUUID } from "node:crypto";
import { z } from "zod";
import { Fault } from "../../errors/index.ts";
import type { BlobStore, Bus, PublishOutcome, StoredBlob, StoredMessage } from "../bus.ts";
import { decode, encode } from "../codec.ts";
import { headerNames } from "../delivery/header-names.ts";
import { blobStore } from "../topology.ts";

const chunkBytes = 128 * 1024;
const parallelChunks = 8;
const attempts = 3;

const Meta = z.looseObject({
  name: z.string(),
  nuid: z.string(),
  size: z.number(),
  chunks: z.number(),
  digest: z.string().default(""),
  deleted: z.boolean().default(false),
});
type Meta = z.infer<typeof Meta>;

const digestOf = (bytes: Uint8Array): string =>
  `SHA-256=${createHash("sha256").update(bytes).digest("base64").replaceAll("+", "-").replaceAll("/", "_")}`;

type BlobBus = Pick<Bus, "ensureStream" | "publish" | "last" | "read" | "lastPerSubject" | "purge">;

export class ObjectBlobs implements BlobStore {
  readonly #bus: BlobBus;
  readonly #bucket: string;
  readonly #stream: string;
  readonly #replicas: number;
  readonly #provisioned: boolean;
  #created: Promise<unknown> | undefined;

  /** `provisioned`: the store exists already and is not created here. */
  constructor(bus: BlobBus, bucket: string, options: { replicas: number; provisioned?: boolean }) {
    this.#bus = bus;
    this.#bucket = bucket;
    this.#stream = `OBJ_${bucket}`;
    this.#replicas = options.replicas;
    this.#provisioned = options.provisioned === true;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.#ensure();
    const before = await this.#find(key);
    const { nuid, chunks } = await this.#putChunks(bytes);
    const meta = {
      name: key,
      bucket: this.#bucket,
      nuid,
      size: bytes.length,
      chunks,
      mtime: new Date().toISOString(),
      digest: digestOf(bytes),
      options: { max_chunk_size: chunkBytes },
      deleted: false,
    };
    await this.#putMeta(key, encode(meta), nuid);
    if (before && !before.meta.deleted) await this.#purgeChunks(before.meta);
  }

  /**
   * Readers take the chunks in the order in which the server stored them. If a chunk has to be sent again or
   * was overtaken by a later one, all chunks are sent anew under a new name, one after the other.
   */
  async #putChunks(bytes: Uint8Array): Promise<{ nuid: string; chunks: number }> {
    const chunks = Math.ceil(bytes.length / chunkBytes);
    for (let attempt = 0; attempt < attempts; attempt++) {
      const nuid = randomUUID().replaceAll("-", "");
      const subject = this.#subject(`C.${nuid}`);
      const atOnce = attempt === 0 ? parallelChunks : 1;
      let whole = true;
      let last = 0;
      for (let first = 0; whole && first < chunks; first += atOnce) {
        const group = Array.from({ length: Math.min(atOnce, chunks - first) }, (_, i) => first + i);
        const outcomes = await Promise.all(
          group.map((n) => this.#bus.publish(subject, bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes))),
        );
        for (const outcome of outcomes) {
          whole &&= outcome.kind === "stored" && outcome.seq > last;
          if (outcome.kind === "stored") last = outcome.seq;
        }
      }
      if (whole) return { nuid, chunks };
      await this.#purgeChunks({ nuid });
    }
    throw this.#notStored();
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    // Another client may put the same key meanwhile, which removes the chunks being read; the newer blob is
    // read then.
    for (let attempt = 0; attempt < 3; attempt++) {
      // A lagging replica may not have a blob that was stored just now, and a caller gives up for good on a
      // missing blob: ask the leader too.
      const { meta } = (await this.#find(key)) ?? (await this.#find(key, { leader: true })) ?? {};
      if (!meta || meta.deleted) return undefined;
      const chunks =
        meta.chunks === 0
          ? []
          : ((await this.#bus.read(this.#stream, this.#subject(`C.${meta.nuid}`))) ?? []);
      const bytes = joined(chunks);
      if (bytes.length === meta.size && digestOf(bytes) === padded(meta.digest)) return bytes;
      if ((await this.#find(key))?.meta.nuid === meta.nuid) break;
    }
    throw new Fault("transient", {
      code: "blob_damaged",
      message: `blob ${key} does not have the content it was stored with`,
    });
  }

  async touch(key: string): Promise<boolean> {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const found = await this.#find(key, { leader: true });
      if (!found || found.meta.deleted) return false;
      const outcome = await this.#replaceMeta(key, found.meta, found.seq);
      if (outcome.kind === "stored") return true;
    }
    throw this.#notStored();
  }

  async delete(key: string, seenSeq = Number.MAX_SAFE_INTEGER): Promise<boolean> {
    let asked: string | undefined;
    for (let attempt = 0; attempt < attempts; attempt++) {
      const found = await this.#find(key, { leader: true });
      if (!found) return false;
      const { meta, seq } = found;
      // If the delete mark is our own, from a publish whose answer was lost, finish that deletion.
      if (meta.deleted && meta.nuid !== asked) return false;
      if (!meta.deleted) {
        if (seq > seenSeq) return false;
        asked = meta.nuid;
        const deleted = { ...meta, size: 0, chunks: 0, digest: "", deleted: true };
        // Another client touched or put the key meanwhile, or the server did not answer: read it again.
        if ((await this.#replaceMeta(key, deleted, seq)).kind !== "stored") continue;
      }
      await this.#purgeChunks(meta);
      await this.#forget(key);
      return true;
    }
    throw this.#notStored();
  }

  /** Removes the delete mark, which only concurrent readers need; the server would keep it for ever. */
  async #forget(key: string): Promise<void> {
    const found = await this.#find(key, { leader: true });
    if (found?.meta.deleted) await this.#bus.purge(this.#stream, this.#subject(metaOf(key)), found.seq);
  }

  async list(prefix: string): Promise<StoredBlob[]> {
    await this.#ensure();
    const blobs: StoredBlob[] = [];
    for await (const message of this.#bus.lastPerSubject(this.#stream, this.#subject("M.*"))) {
      const meta = parse(message);
      if (meta && !meta.deleted && meta.name.startsWith(prefix))
        blobs.push({ key: meta.name, seq: message.seq, at: message.at });
    }
    return blobs;
  }

  /**
   * The chunks of one put have a subject of their own that is never used again, so the whole subject is
   * purged.
   */
  #purgeChunks({ nuid }: Pick<Meta, "nuid">): Promise<number> {
    return this.#bus.purge(this.#stream, this.#subject(`C.${nuid}`), Number.MAX_SAFE_INTEGER);
  }

  #replaceMeta(key: string, meta: Meta, expectLastSeq: number): Promise<PublishOutcome> {
    const options = { expectLastSeq, headers: { [headerNames.rollup]: "sub" } };
    return this.#bus.publish(this.#subject(metaOf(key)), encode(meta), options);
  }

  async #find(key: string, options?: { leader: boolean }): Promise<{ meta: Meta; seq: number } | undefined> {
    const message = await this.#bus.last(this.#stream, this.#subject(metaOf(key)), options);
    const meta = message && parse(message);
    return meta && { meta, seq: message.seq };
  }

  /** Publishes again if the outcome is unknown; the message id makes the server store it once. */
  async #putMeta(key: string, body: Uint8Array, msgId: string): Promise<void> {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const options = { msgId, headers: { [headerNames.rollup]: "sub" } };
      const outcome = await this.#bus.publish(this.#subject(metaOf(key)), body, options);
      if (outcome.kind === "stored") return;
    }
    throw this.#notStored();
  }

  #notStored(): Fault {
    return new Fault("transient", {
      code: "nats_unavailable",
      message: `a blob was not stored in ${this.#bucket}: NATS did not answer`,
    });
  }

  #subject(rest: string): string {
    return `$O.${this.#bucket}.${rest}`;
  }

  async #ensure(): Promise<void> {
    if (this.#provisioned) return;
    this.#created ??= this.#bus.ensureStream(blobStore(this.#bucket, this.#replicas));
    try {
      await this.#created;
    } catch (error) {
      this.#created = undefined; // The next call tries again.
      throw error;
    }
  }
}

const metaOf = (key: string): string => {
  const text = Buffer.from(key).toString("base64url");
  return `M.${text.padEnd(Math.ceil(text.length / 4) * 4, "=")}`;
};

const padded = (digest: string): string => {
  const [, text = ""] = digest.split("SHA-256=");
  return `SHA-256=${text.padEnd(Math.ceil(text.length / 4) * 4, "=")}`;
};

function parse(message: StoredMessage): Meta | undefined {
  const meta = decode(Meta, message.body);
  return meta.kind === "ok" ? meta.value : undefined;
}

function joined(chunks: StoredMessage[]): Uint8Array {
  const only = chunks.length === 1 ? chunks[0] : undefined;
  return only ? only.body : new Uint8Array(Buffer.concat(chunks.map((chunk) => chunk.body)));
}
