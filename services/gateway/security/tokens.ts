/**
 * Bearer tokens: those of the settings, and those that an administrator issued. Compared in constant time; kept only
 * as digests.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { Fault } from "../../../shared/errors/index.ts";
import { type Grant, type Identity, parseGrant, roles } from "./identity.ts";

/** A token of the settings. */
export interface ConfiguredToken extends Omit<Grant, "payloads"> {
  name: string;
  token: string;
  payloads?: boolean | undefined;
}

export interface KnownToken extends Identity {
  /** Stands in cookies; the token cannot be derived from it. */
  id: string;
  digest: Buffer;
  expiresAt?: number | undefined;
}

/** The tokens that administrators issued and that are still valid. */
export type IssuedTokens = () => readonly KnownToken[];

/** 128 bits in base64url. */
const shortest = 22;
const tokenText = /^[A-Za-z0-9_~.+/=-]+$/;
export const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();

export class Tokens {
  readonly #configured: readonly KnownToken[];
  readonly #issued: IssuedTokens;

  constructor(configured: readonly ConfiguredToken[], issued: IssuedTokens = () => []) {
    this.#configured = configured.map(({ name, role, token, payloads = false }) => {
      const digest = digestOf(token);
      return {
        name,
        role,
        payloads,
        digest,
        id: digestOf(`id ${digest.toString("hex")}`)
          .toString("hex")
          .slice(0, 12),
      };
    });
    this.#issued = issued;
  }

  get configured(): number {
    return this.#configured.length;
  }

  identify(token: string, now: number): Identity | undefined {
    const found = this.#find(token, now);
    return found && identityOf(found);
  }

  /**
   * A cookie's value: proves until `expiresAt` that the caller knew the token, without containing it. Invalid
   * once the token is removed, revoked or expired.
   */
  seal(token: string, expiresAt: number, now: number): string | undefined {
    const found = this.#find(token, now);
    if (!found) return undefined;
    const claim = `${found.id}.${expiresAt}`;
    return `${claim}.${sign(found, claim)}`;
  }

  unseal(cookie: string, now: number): Identity | undefined {
    const match = /^([A-Za-z0-9]{1,32})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/.exec(cookie);
    if (!match) return undefined;
    const [, id = "", expiresAt = "", signature = ""] = match;
    const known = this.#all(now).find((one) => one.id === id);
    if (!known || Number(expiresAt) <= now) return undefined;
    const expected = sign(known, `${id}.${expiresAt}`);
    return timingSafeEqual(Buffer.from(expected), Buffer.from(signature)) ? identityOf(known) : undefined;
  }

  /** Compares all tokens, so that the time reveals nothing about which one came close. */
  #find(token: string, now: number): KnownToken | undefined {
    const digest = digestOf(token);
    let found: KnownToken | undefined;
    for (const known of this.#all(now)) if (timingSafeEqual(known.digest, digest)) found = known;
    return found;
  }

  #all(now: number): KnownToken[] {
    const issued = this.#issued().filter(({ expiresAt = 0 }) => expiresAt > now);
    return [...this.#configured, ...issued];
  }
}

const sign = ({ digest }: KnownToken, claim: string): string =>
  createHmac("sha256", digest).update(`holdfast cookie ${claim}`).digest("base64url");

const identityOf = ({ name, role, payloads, scope }: KnownToken): Identity => ({
  name,
  role,
  payloads,
  ...(scope && { scope }),
});

/** `admin:secret,viewer/alice:secret` as it stands in GATEWAY_TOKENS, or one a line in the file. */
export function parseTokens(text: string, variable: string): ConfiguredToken[] {
  return text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== "" && !part.startsWith("#"))
    .map((part, at) => {
      const [, granted = "", name, token] =
        /^([a-z]+(?:\+[a-z]+)?)(?:\/([A-Za-z0-9_.@-]{1,64}))?:(.*)$/.exec(part) ?? [];
      const complain = (message: string, hint: string) =>
        new Fault("config", {
          code: "invalid_config",
          message: `${variable}: entry ${at + 1} ${message}`,
          hint,
        });
      const grant = parseGrant(granted);
      if (!grant || token === undefined) {
        throw complain(
          "is not role:token",
          `Roles are ${roles.join(", ")}; role/name:token gives it a name, role+payloads the right to see values.`,
        );
      }
      if (token.length < shortest || !tokenText.test(token)) {
        throw complain(
          `has a token that is too short or has odd characters (at least ${shortest} of A-Z a-z 0-9 _~.+/=-)`,
          "Make one with: openssl rand -hex 24",
        );
      }
      return { ...grant, name: name ?? grant.role, token };
    });
}
