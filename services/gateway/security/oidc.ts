/**
 * Log-in by an OpenID Connect provider: authorization code with PKCE. What belongs to a log-in under way (state,
 * nonce, verifier) travels in a sealed cookie of ten minutes, so that any gateway can finish it. Afterwards the
 * browser keeps the person's name and groups, sealed; the groups become a role at each request, so that a changed
 * mapping counts at once.
 */
import { randomBytes } from "node:crypto";
import * as oauth from "oauth4webapi";
import { z } from "zod";
import { Fault, messageOf } from "../../../shared/errors/index.ts";
import { isLoopback } from "./hosts.ts";
import type { Grant, Identity } from "./identity.ts";
import { roleAllows } from "./identity.ts";
import { Sealer } from "./sealed-cookies.ts";

export interface OidcConfig {
  issuer: string;
  clientId: string;
  /** Undefined: a public client, which PKCE alone protects. */
  clientSecret: string | undefined;
  scopes: readonly string[];
  /** The claim that lists a person's groups. */
  groupsClaim: string;
  /** The role of the members of each group. */
  roles: ReadonlyMap<string, Grant>;
  /** How long a person stays logged in. */
  sessionMs: number;
  /** Where people reach the gateway. */
  publicUrl: string;
}

const loginMs = 10 * 60_000;
const askMs = 10_000;
const UnderWay = z.object({ state: z.string(), nonce: z.string(), verifier: z.string(), to: z.string() });
const Session = z.object({ name: z.string(), groups: z.array(z.string()) });

export type LoggedIn =
  | { kind: "logged-in"; identity: Identity; cookie: string; to: string }
  /** The provider knows the person, but none of the person's groups has a role here. */
  | { kind: "no-role"; name: string };

export class Oidc {
  readonly #config: OidcConfig;
  readonly #sealer: Sealer;
  readonly #client: oauth.Client;
  #server: Promise<oauth.AuthorizationServer> | undefined;

  constructor(config: OidcConfig) {
    this.#config = config;
    this.#client = { client_id: config.clientId };
    // Without a secret that gateways share, each knows only the log-ins that went through itself.
    this.#sealer = new Sealer(config.clientSecret ?? randomBytes(32));
  }

  get sessionMs(): number {
    return this.#config.sessionMs;
  }

  get #redirectUri(): string {
    return `${this.#config.publicUrl}/api/oidc/callback`;
  }

  /** Where to send the browser, and what it keeps until it is back. `to`: the page it wanted. */
  async begin(to: string, now: number): Promise<{ address: string; cookie: string; maxAgeSeconds: number }> {
    const server = await this.#discover();
    const [state, nonce, verifier] = [
      oauth.generateRandomState(),
      oauth.generateRandomNonce(),
      oauth.generateRandomCodeVerifier(),
    ];
    const address = new URL(server.authorization_endpoint ?? "");
    const parameters = {
      client_id: this.#config.clientId,
      redirect_uri: this.#redirectUri,
      response_type: "code",
      scope: this.#config.scopes.join(" "),
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      state,
      nonce,
    };
    for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
    const cookie = this.#sealer.seal("login", { state, nonce, verifier, to: ownPath(to) }, now + loginMs);
    return { address: address.href, cookie, maxAgeSeconds: loginMs / 1000 };
  }

  /** `address`: the whole address the provider sent the browser back to. */
  async finish(address: URL, cookie: string, now: number): Promise<LoggedIn> {
    const underWay = UnderWay.safeParse(this.#sealer.open("login", cookie, now)).data;
    if (!underWay)
      throw new Fault("application", {
        code: "oidc_login_unknown",
        message: "this log-in was not begun in this browser, or more than ten minutes ago",
        hint: "Log in again.",
      });
    const server = await this.#discover();
    const claims = await this.#askFor(server, address, underWay);
    const name = String(claims.preferred_username ?? claims.email ?? claims.sub).slice(0, 128);
    const found = claims[this.#config.groupsClaim];
    const groups = (Array.isArray(found) ? found : [found]).filter(
      (group): group is string => typeof group === "string" && this.#config.roles.has(group),
    );
    const session = { name, groups };
    const identity = this.#identity(session);
    if (!identity) return { kind: "no-role", name };
    const sealed = this.#sealer.seal("session", session, now + this.#config.sessionMs);
    return { kind: "logged-in", identity, cookie: `${prefix}${sealed}`, to: underWay.to };
  }

  unseal(cookie: string, now: number): Identity | undefined {
    if (!cookie.startsWith(prefix)) return undefined;
    const session = Session.safeParse(this.#sealer.open("session", cookie.slice(prefix.length), now));
    return session.success ? this.#identity(session.data) : undefined;
  }

  /** The highest role of all groups; the right to see values if any group has it. */
  #identity({ name, groups }: z.infer<typeof Session>): Identity | undefined {
    const grants = groups.flatMap((group) => this.#config.roles.get(group) ?? []);
    const [first, ...others] = grants.map(({ role }) => role);
    if (first === undefined) return undefined;
    const role = others.reduce((best, one) => (roleAllows(one, best) ? one : best), first);
    return { name, role, payloads: grants.some(({ payloads }) => payloads) };
  }

  async #askFor(
    server: oauth.AuthorizationServer,
    address: URL,
    { state, nonce, verifier }: z.infer<typeof UnderWay>,
  ): Promise<Record<string, unknown>> {
    try {
      const parameters = oauth.validateAuthResponse(server, this.#client, address, state);
      const { clientSecret } = this.#config;
      const answer = await oauth.authorizationCodeGrantRequest(
        server,
        this.#client,
        clientSecret === undefined ? oauth.None() : oauth.ClientSecretBasic(clientSecret),
        parameters,
        this.#redirectUri,
        verifier,
        this.#http(),
      );
      const tokens = await oauth.processAuthorizationCodeResponse(server, this.#client, answer, {
        expectedNonce: nonce,
        requireIdToken: true,
      });
      await oauth.validateApplicationLevelSignature(server, answer, this.#http());
      const claims = oauth.getValidatedIdTokenClaims(tokens);
      if (!claims || this.#config.groupsClaim in claims || server.userinfo_endpoint === undefined)
        return { ...claims };
      // Many providers send the groups with the user info and not in the token.
      const asked = await oauth.userInfoRequest(server, this.#client, tokens.access_token, this.#http());
      return { ...claims, ...(await oauth.processUserInfoResponse(server, this.#client, claims.sub, asked)) };
    } catch (cause) {
      const why = messageOf(cause);
      throw new Fault("application", {
        code: "oidc_refused",
        message: `the log-in provider's answer was not accepted: ${why}`,
        hint: "Log in again. If it stays, compare the provider's client with GATEWAY_OIDC_… (docs/http-api.md).",
        cause,
      });
    }
  }

  /** Reads the provider's description once; reads it again after a failure. */
  async #discover(): Promise<oauth.AuthorizationServer> {
    const issuer = new URL(this.#config.issuer);
    this.#server ??= oauth
      .discoveryRequest(issuer, this.#http())
      .then((answer) => oauth.processDiscoveryResponse(issuer, answer));
    try {
      return await this.#server;
    } catch (cause) {
      this.#server = undefined;
      throw new Fault("transient", {
        code: "oidc_unreachable",
        message: `the log-in provider ${issuer.href} did not answer: ${cause instanceof Error ? cause.message : cause}`,
        hint: "Check GATEWAY_OIDC_ISSUER, and that the gateway can reach it.",
        cause,
      });
    }
  }

  #http(): { signal: AbortSignal; [oauth.allowInsecureRequests]?: boolean } {
    const plain = this.#config.issuer.startsWith("http:"); // a loopback address: see `oidcIssuer`
    return { signal: AbortSignal.timeout(askMs), ...(plain && { [oauth.allowInsecureRequests]: true }) };
  }
}

/** Distinguishes it from the cookie of a token. */
const prefix = "oidc.";

/** Always a page of this gateway: the browser is never sent to another site. */
function ownPath(to: string): string {
  const base = "http://gateway.invalid";
  const parsed = URL.canParse(to, base) ? new URL(to, base) : undefined;
  return parsed?.origin === base && to.startsWith("/") ? parsed.pathname + parsed.search : "/";
}

export const isSafeIssuer = (issuer: string): boolean => {
  const { protocol, hostname } = new URL(issuer);
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
};
