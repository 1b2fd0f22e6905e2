/**
 * Identifies a caller by what the request carries: a token, the cookie of a token, or the cookie of a
 * log-in.
 */
import { type Identity, type PayloadReaders, seesPayloads } from "./identity.ts";
import type { Oidc } from "./oidc.ts";
import type { Tokens } from "./tokens.ts";

interface AccessOptions {
  tokens: Tokens;
  oidc: Oidc | undefined;
  payloadReaders: PayloadReaders;
}

/** How long a browser stays logged in with a token. */
const tokenCookieMs = 12 * 3_600_000;

export class Access {
  readonly oidc: Oidc | undefined;
  readonly #options: AccessOptions;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.oidc = options.oidc;
  }

  /** False: every client that reaches the (loopback) address is admitted. */
  get required(): boolean {
    return this.#options.tokens.configured > 0 || this.oidc !== undefined;
  }

  byToken(token: string, now: number): Identity | undefined {
    return this.#with(this.#options.tokens.identify(token, now));
  }

  byCookie(cookie: string, now: number): Identity | undefined {
    return this.#with(this.#options.tokens.unseal(cookie, now) ?? this.oidc?.unseal(cookie, now));
  }

  /** The cookie for a browser that shows a token. */
  logIn(
    token: string,
    now: number,
  ): { identity: Identity; cookie: string; maxAgeSeconds: number } | undefined {
    const identity = this.byToken(token, now);
    const cookie = this.#options.tokens.seal(token, now + tokenCookieMs, now);
    return identity && cookie !== undefined
      ? { identity, cookie, maxAgeSeconds: tokenCookieMs / 1000 }
      : undefined;
  }

  #with(identity: Identity | undefined): Identity | undefined {
    return identity && { ...identity, payloads: seesPayloads(identity, this.#options.payloadReaders) };
  }
}
