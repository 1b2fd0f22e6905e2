/**
 * HMAC-SHA-256 (RFC 2104) as two one-shot hashes. `createHmac` returns an object with memory outside the heap for
 * every use: it takes twice the time, and more work of the garbage collector.
 */
import { hash } from "node:crypto";

const blockBytes = 64;
const digestBytes = 32;

/** A secret, prepared for many uses. */
export class MacKey {
  /** The first block of the inner hash, followed by room for the text. */
  #inner = Buffer.alloc(4 * blockBytes);
  /** The first block of the outer hash, followed by room for the inner hash. */
  readonly #outer = Buffer.alloc(blockBytes + digestBytes);

  constructor(secret: Uint8Array) {
    this.change(secret);
  }

  change(secret: Uint8Array): void {
    const key = secret.length > blockBytes ? hash("sha256", secret, "buffer") : secret;
    for (let at = 0; at < blockBytes; at++) {
      const byte = key[at] ?? 0;
      this.#inner[at] = byte ^ 0x36;
      this.#outer[at] = byte ^ 0x5c;
    }
  }

  /** The digest as base64url. */
  digest(text: string): string {
    // As text: as a buffer, each inner hash would be an object with memory outside the heap again.
    this.#outer.write(hash("sha256", this.#withText(text), "binary"), blockBytes, "binary");
    return hash("sha256", this.#outer, "base64url");
  }

  #withText(text: string): Uint8Array {
    const longest = blockBytes + 3 * text.length;
    if (this.#inner.length < longest) {
      const wider = Buffer.alloc(longest);
      this.#inner.copy(wider, 0, 0, blockBytes);
      this.#inner = wider;
    }
    return this.#inner.subarray(0, blockBytes + this.#inner.write(text, blockBytes));
  }
}

const usedOnce = new MacKey(Buffer.alloc(0));

/** For a secret that is used once. */
export function digestWith(secret: string, text: string): string {
  usedOnce.change(Buffer.from(secret));
  return usedOnce.digest(text);
}
