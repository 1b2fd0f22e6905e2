/**
 * Blobs in a JetStream object store, in its documented format (`nats object` reads and writes them), over the bus alone:
 * reads are direct gets that survive a reconnect, where the client library's use a consumer that stalls.
 */
import { createHash, randomUUID } from "node:crypto";
import { z } from "zod";
import { Fault } from "../errors/index.ts";
import type { BlobStore, Bus, PublishOutcome, StoredBlob, StoredMessage } from "./bus.ts";
import { decode, encode } from "./codec.ts";

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
  #created: Promise<unknown> | undefined;

  constructor(bus: BlobBus, bucket: string, options: { replicas: number }) {
    this.#bus = bus;
    this.#bucket = bucket;
    this.#stream = `OBJ_${bucket}`;
    this.#replicas = options.replicas;
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

  /** Chunks are read in the order they were stored, so one that must be sent again means all under a new name. */
  async #putChunks(bytes: Uint8Array): Promise<{ nuid: string; chunks: number }> {
    const chunks = Math.ceil(bytes.length / chunkBytes);
    for (let attempt = 0; attempt < attempts; attempt++) {
      const nuid = randomUUID().replaceAll("-", "");
      const subject = this.#subject(`C.${nuid}`);
      let whole = true;
      for (let first = 0; whole && first < chunks; first += parallelChunks) {
        const group = Array.from({ length: Math.min(parallelChunks, chunks - first) }, (_, i) => first + i);
        const outcomes = await Promise.all(
          group.map((n) => this.#bus.publish(subject, bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes))),
        );
        whole = outcomes.every((outcome) => outcome.kind === "stored");
      }
      if (whole) return { nuid, chunks };
      await this.#purgeChunks({ nuid });
    }
    throw this.#unstored();
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    // Somebody may put the same key meanwhile and so remove the chunks being read: then the newer one is read.
    for (let attempt = 0; attempt < 3; attempt++) {
      // A copy that lags does not have what was stored just now; whoever is told that it is missing gives up for good.
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
    throw this.#unstored();
  }

  async delete(key: string, seenSeq = Number.MAX_SAFE_INTEGER): Promise<boolean> {
    let asked: string | undefined;
    for (let attempt = 0; attempt < attempts; attempt++) {
      const found = await this.#find(key, { leader: true });
      if (!found) return false;
      const { meta, seq } = found;
      // One that we marked without being told so is ours to finish.
      if (meta.deleted && meta.nuid !== asked) return false;
      if (!meta.deleted) {
        if (seq > seenSeq) return false;
        asked = meta.nuid;
        const deleted = { ...meta, size: 0, chunks: 0, digest: "", deleted: true };
        // Touched or put meanwhile, or not answered: looked at anew.
        if ((await this.#replaceMeta(key, deleted, seq)).kind !== "stored") continue;
      }
      await this.#purgeChunks(meta);
      await this.#forget(key);
      return true;
    }
    throw this.#unstored();
  }

  /** The mark of a deletion is for those who look meanwhile; it would stay for ever. */
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
        blobs.push({ key: meta.name, seq: message.seq });
    }
    return blobs;
  }

  /** Chunks of one put have a subject of their own, which nobody uses again: all of them go. */
  #purgeChunks({ nuid }: Pick<Meta, "nuid">): Promise<number> {
    return this.#bus.purge(this.#stream, this.#subject(`C.${nuid}`), Number.MAX_SAFE_INTEGER);
  }

  #replaceMeta(key: string, meta: Meta, expectLastSeq: number): Promise<PublishOutcome> {
    const options = { expectLastSeq, headers: { "Nats-Rollup": "sub" } };
    return this.#bus.publish(this.#subject(metaOf(key)), encode(meta), options);
  }

  async #find(key: string, options?: { leader: boolean }): Promise<{ meta: Meta; seq: number } | undefined> {
    const message = await this.#bus.last(this.#stream, this.#subject(metaOf(key)), options);
    const meta = message && parse(message);
    return meta && { meta, seq: message.seq };
  }

  /** An unknown outcome is asked again; the message id keeps the answer the same. */
  async #putMeta(key: string, body: Uint8Array, msgId: string): Promise<void> {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const options = { msgId, headers: { "Nats-Rollup": "sub" } };
      const outcome = await this.#bus.publish(this.#subject(metaOf(key)), body, options);
      if (outcome.kind === "stored") return;
    }
    throw this.#unstored();
  }

  #unstored(): Fault {
    return new Fault("transient", {
      code: "nats_unavailable",
      message: `a blob was not stored in ${this.#bucket}: NATS did not answer`,
    });
  }

  #subject(rest: string): string {
    return `$O.${this.#bucket}.${rest}`;
  }

  async #ensure(): Promise<void> {
    this.#created ??= this.#bus.ensureStream({
      name: this.#stream,
      subjects: [this.#subject("C.>"), this.#subject("M.>")],
      retention: "limits",
      sequencesByTime: true,
      replicas: this.#replicas,
    });
    try {
      await this.#created;
    } catch (error) {
      this.#created = undefined; // asked again next time
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
