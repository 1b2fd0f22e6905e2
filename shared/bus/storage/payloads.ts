/**
 * User values on their way through messages: small ones in place, big ones as blobs with a reference (claim
 * check).
 *
 * VALUE-1 A reader gets the value as JSON restores it, even in the process that wrapped it: a value looks the same
 *    live and replayed.
 * VALUE-2 The key of a blob is its owner and its digest: storing it twice stores it once, and wrong content
 *    is noticed.
 */
import { createHash } from "node:crypto";
import type { BlobRef, Payload } from "../../../schemas/index.ts";
import { Fault, HoldfastError, isDeeperThan, maxValueBytes, maxValueDepth } from "../../errors/index.ts";
import { notSerialisable, writeJson } from "../../runtime/index.ts";
import type { BlobStore } from "../bus.ts";
import { parseJson, parseText } from "../codec.ts";

interface PayloadLimits {
  /** JSON up to this many bytes travels inside the message. */
  inlineBytes?: number;
  /** Larger values are refused. */
  maxBytes?: number;
}

type Serialised = { kind: "plain"; json: unknown } | { kind: "bytes"; bytes: Uint8Array };

const encoder = new TextEncoder();

export class Payloads {
  readonly #blobs: BlobStore;
  readonly #inlineBytes: number;
  readonly #maxBytes: number;

  constructor(blobs: BlobStore, limits: PayloadLimits = {}) {
    this.#blobs = blobs;
    this.#inlineBytes = limits.inlineBytes ?? 256 * 1024;
    this.#maxBytes = limits.maxBytes ?? maxValueBytes;
  }

  /** `owner` is the instance id; the blobs of one owner are deleted together. */
  async wrap(value: unknown, owner: string): Promise<Payload> {
    return this.#store(this.#serialise(value), owner);
  }

  /** Like `wrap`, for a caller that already has the JSON text. */
  async wrapText(json: string, owner: string): Promise<Payload> {
    return this.#store(this.#check(json), owner);
  }

  async #store(serialised: Serialised, owner: string): Promise<Payload> {
    if (serialised.kind === "plain") return { json: serialised.json };
    const { bytes } = serialised;
    const sha256 = digest(bytes);
    const key = `${owner}/${sha256}`;
    if (!(await this.#blobs.touch(key))) await this.#blobs.put(key, bytes);
    return { blob: { key, bytes: bytes.length, sha256 } };
  }

  /** Wraps a small value without waiting; undefined if the value needs a blob. */
  wrapSync(value: unknown): Payload | undefined {
    const serialised = this.#serialise(value);
    return serialised.kind === "plain" ? { json: serialised.json } : undefined;
  }

  /** `wrapText` without waiting; undefined if the value needs a blob. */
  wrapTextSync(json: string): Payload | undefined {
    const serialised = this.#check(json);
    return serialised.kind === "plain" ? { json: serialised.json } : undefined;
  }

  /**
   * Stores the same value as a blob of `owner`: the receiver of a value keeps it although the sender's blobs
   * may be deleted. A missing or damaged blob keeps its reference; its reader gets the error.
   */
  async adopt(payload: Payload, owner: string): Promise<Payload> {
    if (this.isInline(payload) || payload.blob.key.startsWith(`${owner}/`)) return payload;
    const { blob } = payload;
    const key = `${owner}/${blob.sha256}`;
    if (!(await this.#blobs.touch(key))) {
      const bytes = blob.bytes > this.#maxBytes ? undefined : await this.#blobs.get(blob.key);
      if (bytes === undefined || digest(bytes) !== blob.sha256) return payload;
      await this.#blobs.put(key, bytes);
    }
    return { blob: { ...blob, key } };
  }

  async unwrap(payload: Payload): Promise<unknown> {
    return "json" in payload ? payload.json : this.#fetch(payload.blob);
  }

  isInline(payload: Payload): payload is Extract<Payload, { json: unknown }> {
    return "json" in payload;
  }

  async #fetch(ref: BlobRef): Promise<unknown> {
    if (ref.bytes > this.#maxBytes) {
      throw new Fault("contract", {
        code: "payload_too_large",
        message: `blob ${ref.key} has ${ref.bytes} bytes, more than the limit of ${this.#maxBytes}`,
      });
    }
    const bytes = await this.#blobs.get(ref.key);
    if (bytes === undefined) {
      throw new Fault("contract", {
        code: "blob_missing",
        message: `blob ${ref.key} (${ref.bytes} bytes) is not in the object store`,
        hint: "It was deleted with its instance, or the object store was purged.",
      });
    }
    if (digest(bytes) !== ref.sha256) {
      throw new Fault("contract", {
        code: "blob_damaged",
        message: `blob ${ref.key} does not have the content that its reference describes`,
      });
    }
    const parsed = parseJson(bytes, { maxBytes: this.#maxBytes });
    if (parsed.kind === "ok") return parsed.value;
    throw new Fault("contract", { code: "blob_damaged", message: `blob ${ref.key}: ${parsed.message}` });
  }

  #serialise(value: unknown): Serialised {
    if (value === undefined || value === null || typeof value === "boolean")
      return { kind: "plain", json: value };
    if (typeof value === "number") return { kind: "plain", json: Number.isFinite(value) ? value : null };
    return this.#check(writeJson(value));
  }

  /** The text of a large value is not parsed here: a reader of the value fetches it back. */
  #check(text: string): Serialised {
    // A character takes one to three bytes of UTF-8: most texts need no exact count.
    const mayBeLarge = text.length * 3 > this.#inlineBytes;
    const size = mayBeLarge ? Buffer.byteLength(text) : text.length;
    if (size > this.#maxBytes) throw this.#tooLarge(size);
    if (size <= this.#inlineBytes) {
      const parsed = parseText(text, maxValueDepth);
      if (parsed.kind === "invalid") throw notSerialisable(`it is ${parsed.message}`);
      return { kind: "plain", json: parsed.value };
    }
    if (isDeeperThan(text, maxValueDepth))
      throw notSerialisable(`it is nested deeper than ${maxValueDepth} levels`);
    return { kind: "bytes", bytes: encoder.encode(text) };
  }

  #tooLarge(bytes: number): HoldfastError {
    return new HoldfastError({
      code: "payload_too_large",
      message: `a value of ${bytes} bytes is larger than the limit of ${this.#maxBytes}; keep it elsewhere and pass a reference to it`,
      details: { bytes, limit: this.#maxBytes },
    });
  }
}

const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
