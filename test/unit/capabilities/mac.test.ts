/** The keyed hash below capabilities is HMAC-SHA-256, whatever the key and the text. */
import { createHmac, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { digestWith, MacKey } from "../../../shared/capabilities/mac.ts";

const expected = (secret: Uint8Array | string, text: string) =>
  createHmac("sha256", secret).update(text).digest("base64url");

test("equals what OpenSSL makes of the same key and text, long ones and those of other alphabets too", () => {
  const text = fc.string({ unit: "binary", maxLength: 400 });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(text, { minLength: 1 }), (secret, texts) => {
      const key = new MacKey(secret);
      for (const one of texts) expect(key.digest(one)).toBe(expected(secret, one));
      expect(key.digest(texts[0] ?? ""), "a shorter text after a longer one").toBe(
        expected(secret, texts[0] ?? ""),
      );
    }),
  );
});

test("a secret that is used once leaves nothing to the next", () => {
  const secrets = [randomBytes(80).toString("hex"), "short", randomBytes(20).toString("base64url")];
  for (const secret of secrets) expect(digestWith(secret, "lost")).toBe(expected(secret, "lost"));
});
