/** Bearer tokens and their roles. Compared in constant time; kept only as digests. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { Fault } from "../../../shared/errors/index.ts";

export const roles = ["viewer", "operator", "admin"] as const;
export type Role = (typeof roles)[number];

export const roleAllows = (has: Role, needs: Role): boolean => roles.indexOf(has) >= roles.indexOf(needs);

export interface Identity {
  /** For the audit: the token's name, or its role if it has no name. */
  name: string;
  role: Role;
}

interface Token extends Identity {
  digest: Buffer;
}

/** 128 bits in base64url. */
const shortest = 22;
const tokenText = /^[A-Za-z0-9_~.+/=-]+$/;
const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

export class Tokens {
  readonly #tokens: readonly Token[];

  constructor(tokens: readonly (Identity & { token: string })[]) {
    this.#tokens = tokens.map(({ name, role, token }) => ({ name, role, digest: sha256(token) }));
  }

  /** Without tokens every client that reaches the (loopback) address is admitted. */
  get required(): boolean {
    return this.#tokens.length > 0;
  }

  /** Compares all tokens, so that the time reveals nothing about which one came close. */
  identify(token: string): Identity | undefined {
    const digest = sha256(token);
    let found: Token | undefined;
    for (const known of this.#tokens) if (timingSafeEqual(known.digest, digest)) found = known;
    return found && { name: found.name, role: found.role };
  }

  /**
   * A cookie's value: proves until `expiresAt` that the caller knew the token, without containing it. Invalid
   * once the token is removed.
   */
  seal(token: string, expiresAt: number): string | undefined {
    const identity = this.identify(token);
    if (!identity) return undefined;
    const index = this.#tokens.findIndex((known) => timingSafeEqual(known.digest, sha256(token)));
    const claim = `${index}.${expiresAt}`;
    return `${claim}.${this.#sign(index, claim)}`;
  }

  unseal(cookie: string, now: number): Identity | undefined {
    const match = /^(\d{1,4})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/.exec(cookie);
    if (!match) return undefined;
    const [, index = "", expiresAt = "", signature = ""] = match;
    const known = this.#tokens[Number(index)];
    if (!known || Number(expiresAt) <= now) return undefined;
    const expected = this.#sign(Number(index), `${index}.${expiresAt}`);
    if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signature))) return undefined;
    return { name: known.name, role: known.role };
  }

  #sign(index: number, claim: string): string {
    const key = this.#tokens[index]?.digest ?? Buffer.alloc(32);
    return createHmac("sha256", key).update(`holdfast cookie ${claim}`).digest("base64url");
  }
}

/** `admin:secret,viewer/alice:secret` as it stands in GATEWAY_TOKENS, or one a line in the file. */
export function parseTokens(text: string, variable: string): (Identity & { token: string })[] {
  return text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== "" && !part.startsWith("#"))
    .map((part, at) => {
      const [, role, name, token] = /^([a-z]+)(?:\/([A-Za-z0-9_.@-]{1,64}))?:(.*)$/.exec(part) ?? [];
      const complain = (message: string, hint: string) =>
        new Fault("config", {
          code: "invalid_config",
          message: `${variable}: entry ${at + 1} ${message}`,
          hint,
        });
      if (!isRole(role) || token === undefined) {
        throw complain(
          "is not role:token",
          `Roles are ${roles.join(", ")}; role/name:token gives it a name.`,
        );
      }
      if (token.length < shortest || !tokenText.test(token)) {
        throw complain(
          `has a token that is too short or has odd characters (at least ${shortest} of A-Z a-z 0-9 _~.+/=-)`,
          "Make one with: openssl rand -hex 24",
        );
      }
      return { role, name: name ?? role, token };
    });
}

const isRole = (value: unknown): value is Role => roles.some((role) => role === value);
