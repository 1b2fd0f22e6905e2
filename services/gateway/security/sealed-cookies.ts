/**
 * Values that a browser keeps for the gateway in cookies: encrypted, so that it can neither read nor change
 * them (AES-256-GCM), valid for one purpose and until a given time.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

export class Sealer {
  readonly #key: Buffer;

  /** Gateways with the same secret open each other's cookies. */
  constructor(secret: Buffer | string) {
    this.#key = Buffer.from(hkdfSync("sha256", secret, "", "holdfast gateway cookies", 32));
  }

  seal(purpose: string, value: unknown, expiresAt: number): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, this.#key, nonce).setAAD(Buffer.from(purpose));
    const text = Buffer.concat([cipher.update(JSON.stringify({ value, expiresAt })), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url");
  }

  /** Undefined if it is not ours, was meant for something else, or is over. */
  open(purpose: string, sealed: string, now: number): unknown {
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length <= nonceBytes + tagBytes) return undefined;
    const decipher = createDecipheriv(algorithm, this.#key, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
      .setAAD(Buffer.from(purpose))
      .setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    try {
      const text = Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]);
      const { value, expiresAt } = JSON.parse(text.toString()) as { value: unknown; expiresAt: number };
      return expiresAt > now ? value : undefined;
    } catch {
      return undefined; // not sealed with this key, or changed since
    }
  }
}
