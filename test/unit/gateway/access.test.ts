/** The gateway's small parts of access control: addresses behind proxies, sealed cookies, shapes of values, the token file. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { Failure, HistoryEvent, Payload, wireObject } from "../../../schemas/index.ts";
import {
  Access,
  hiderOf,
  shapeOf,
  Tokens,
  TrustedProxies,
  writeTokenFile,
} from "../../../services/gateway/security/index.ts";
import { Sealer } from "../../../services/gateway/security/sealed-cookies.ts";

describe("addresses behind proxies", () => {
  const proxies = new TrustedProxies(["10.0.0.0/8", "127.0.0.1", "fd00::/8"]);

  it("believes nobody but the proxies", () => {
    expect(proxies.callerOf("203.0.113.9", "198.51.100.1")).toBe("203.0.113.9");
    expect(new TrustedProxies([]).callerOf("127.0.0.1", "198.51.100.1")).toBe("127.0.0.1");
    expect(proxies.isHttps("203.0.113.9", "https")).toBe(false);
    expect(proxies.isHttps("10.1.2.3", "https")).toBe(true);
  });

  it("takes the last address that is no proxy: what stands before it, the caller wrote", () => {
    expect(proxies.callerOf("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.0.0.2")).toBe("198.51.100.1");
    expect(proxies.callerOf("::ffff:10.0.0.1", "198.51.100.1:4711")).toBe("198.51.100.1");
    expect(proxies.callerOf("fd00::1", "[2001:db8::7]:443")).toBe("2001:db8::7");
    expect(proxies.callerOf("10.0.0.1", "198.51.100.1, unknown")).toBe("10.0.0.1");
    expect(proxies.callerOf("10.0.0.1", undefined)).toBe("10.0.0.1");
  });

  it("refuses what is no address", () => {
    expect(() => new TrustedProxies(["proxy.example"])).toThrow("proxy.example is no address");
  });
});

describe("a sealed statement", () => {
  const sealer = new Sealer("a secret of the installation");

  it("is opened by whoever has the secret, for its purpose, in its time", () => {
    const sealed = sealer.seal("session", { name: "ada" }, 1_000);
    expect(new Sealer("a secret of the installation").open("session", sealed, 999)).toEqual({ name: "ada" });
    expect(sealer.open("session", sealed, 1_000), "over").toBeUndefined();
    expect(sealer.open("login", sealed, 0), "another purpose").toBeUndefined();
    expect(new Sealer("another").open("session", sealed, 0), "another secret").toBeUndefined();
  });

  it("cannot be read or changed", () => {
    const sealed = sealer.seal("session", { name: "ada" }, 1_000);
    expect(Buffer.from(sealed, "base64url").toString("latin1")).not.toContain("ada");
    const bytes = Buffer.from(sealed, "base64url");
    for (const at of [0, 13, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(sealer.open("session", changed.toString("base64url"), 0)).toBeUndefined();
    }
    expect(sealer.open("session", "", 0)).toBeUndefined();
  });
});

describe("the cookie of a token", () => {
  const [token, issuedToken] = ["configured-0123456789abcdef", "hf_issued_0123456789abcdef"];
  const issued = { id: "i", name: "ci", role: "viewer", payloads: false, expiresAt: 1_000 } as const;
  const tokens = new Tokens([{ role: "admin", name: "ada", token }], () => [
    { ...issued, digest: createHash("sha256").update(issuedToken).digest() },
  ]);
  const access = new Access({ tokens, oidc: undefined, payloadReaders: "viewer" });

  it("is over after half a day", () => {
    const { cookie = "", maxAgeSeconds = 0 } = access.logIn(token, 5) ?? {};
    expect(maxAgeSeconds).toBe(43_200);
    expect(access.byCookie(cookie, 5 + 43_200_000 - 1)).toMatchObject({ name: "ada" });
    expect(access.byCookie(cookie, 5 + 43_200_000)).toBeUndefined();
  });

  it("of an issued token is over with the token", () => {
    const { cookie = "" } = access.logIn(issuedToken, 5) ?? {};
    for (const [now, who] of [
      [999, "ci"],
      [1_000, undefined],
    ] as const) {
      expect(access.byToken(issuedToken, now)?.name).toBe(who);
      expect(access.byCookie(cookie, now)?.name).toBe(who);
    }
    expect(access.logIn(issuedToken, 1_000)).toBeUndefined();
  });
});

describe("shapes", () => {
  it("say what kind of value it is, and not which", () => {
    expect(shapeOf({ name: "Ada", age: 36, tags: ["a", "bb", "c", "d"], more: null })).toEqual({
      name: "text of 3",
      age: "number",
      tags: ["text of 1", "text of 2", "text of 1", "and 1 more"],
      more: null,
    });
  });

  it("hide what a schema leaves open, payloads, errors' words, and fields it does not name", () => {
    const hide = hiderOf(
      z.object({
        id: z.string(),
        free: z.unknown().optional(),
        input: Payload,
        error: Failure.optional(),
        wire: wireObject({ known: z.string() }),
      }),
    );
    const error = { code: "boom", message: "secret", retryable: false, details: "secret", stack: "secret" };
    const hidden = hide?.({
      id: "i1",
      free: ["secret"],
      input: { json: { a: "secret" } },
      error: { ...error, cause: error },
      wire: { known: "shown", later: "secret" },
    });
    expect(JSON.stringify(hidden)).not.toContain("secret");
    expect(hidden).toMatchObject({
      id: "i1",
      free: ["text of 6"],
      input: { json: { a: "text of 6" } },
      error: { code: "boom", message: "text of 6", cause: { code: "boom" } },
      wire: { known: "shown" },
    });
  });

  it("hide an event by its kind, and an unknown kind whole", () => {
    const hide = hiderOf(HistoryEvent);
    expect(hide?.({ id: 1, kind: "activity.completed", of: 1, output: { json: "secret" } })).toMatchObject({
      kind: "activity.completed",
      output: { json: "text of 6" },
    });
    expect(JSON.stringify(hide?.({ id: 1, kind: "from.later", value: "secret" }))).not.toContain("secret");
  });

  it("leave alone what holds no user's value", () => {
    expect(hiderOf(z.strictObject({ ok: z.literal(true), id: z.string() }))).toBeUndefined();
  });
});

describe("the file with the login link", () => {
  it("is readable by its owner alone, and replaces whatever stood there", () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-link-"));
    const elsewhere = join(folder, "elsewhere");
    writeFileSync(elsewhere, "mine");
    const path = join(folder, "deep", "gateway.link");
    writeTokenFile(path, "first");
    writeTokenFile(path, "second");
    expect(readFileSync(path, "utf8")).toBe("second\n");
    expect(statSync(path).mode & 0o077).toBe(0);
    const linked = join(folder, "linked");
    symlinkSync(elsewhere, linked);
    writeTokenFile(linked, "third");
    expect(readFileSync(elsewhere, "utf8"), "not written through a link").toBe("mine");
  });

  it("says which setting names another place where it cannot be written", () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-link-"));
    writeFileSync(join(folder, "file"), "");
    expect(() => writeTokenFile(join(folder, "file", "gateway.link"), "x")).toThrow(
      expect.objectContaining({ code: "token_file_unwritable" }),
    );
  });
});
