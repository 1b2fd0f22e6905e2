/**
 * The guards before every route, in this order: headers, host, rate, size, identity, origin, read-only, bus.
 */
import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context, MiddlewareHandler } from "hono";
import { getCookie } from "hono/cookie";
import {
  type Access,
  cookieName,
  hostAllowed,
  type Identity,
  loginCookie,
  type RateLimit,
  roleAllows,
  type TrustedProxies,
  writeAllowedFrom,
} from "../security/index.ts";
import { Problem, tooMany } from "./problem.ts";
import { type Caller, changesThings, type RouteSpec } from "./route.ts";

/** Scripts and styles come only from our own files; no framing, no requests to other hosts. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

export const securityHeaders: MiddlewareHandler = async (c, next) => {
  await next();
  c.header("content-security-policy", contentSecurityPolicy);
  c.header("x-content-type-options", "nosniff");
  c.header("x-frame-options", "DENY");
  c.header("referrer-policy", "no-referrer");
  c.header("cross-origin-opener-policy", "same-origin");
  c.header("cross-origin-resource-policy", "same-origin");
  c.header("permissions-policy", "camera=(), microphone=(), geolocation=()");
};

export const hostGuard =
  (allowed: readonly string[]): MiddlewareHandler =>
  async (c, next) => {
    const host = c.req.header("host");
    if (!hostAllowed(host, allowed)) {
      throw new Problem({
        status: 421,
        code: "host_not_allowed",
        message: "This gateway does not answer to that host name",
        hint: "Use its address or localhost, or add the name to GATEWAY_ALLOWED_HOSTS.",
      });
    }
    await next();
  };

/** Where a request comes from, behind the proxies that are trusted. */
export class Origins {
  readonly #proxies: TrustedProxies;
  readonly #publicIsHttps: boolean;

  constructor(proxies: TrustedProxies, publicUrl: string | undefined) {
    this.#proxies = proxies;
    this.#publicIsHttps = publicUrl?.startsWith("https:") ?? false;
  }

  addressOf(c: Context): string {
    return this.#proxies.callerOf(peerOf(c), c.req.header("x-forwarded-for"));
  }

  /** Returns true if the browser speaks https, to the gateway or to a proxy before it. */
  isHttps(c: Context): boolean {
    return this.#publicIsHttps || this.#proxies.isHttps(peerOf(c), c.req.header("x-forwarded-proto"));
  }
}

const peerOf = (c: Context): string =>
  c.env?.incoming ? (getConnInfo(c).remote.address ?? "unknown") : "unknown";

export const rateGuard =
  (limit: RateLimit, origins: Origins): MiddlewareHandler =>
  async (c, next) => {
    const seconds = limit.take(origins.addressOf(c));
    if (seconds > 0) throw tooMany(seconds);
    await next();
  };

interface IdentifyOptions {
  access: Access;
  origins: Origins;
  now: () => number;
  /** Limit of wrong tokens per address. */
  wrongTokens: RateLimit;
}

/** The caller of a request. Without tokens and log-in every client on this machine is admitted. */
export function identify(c: Context, options: IdentifyOptions): Caller | undefined {
  const { access, origins } = options;
  const from = origins.addressOf(c);
  const https = origins.isHttps(c);
  if (!access.required) return { name: "local", role: "admin", payloads: true, from, https };
  const bearer = /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
  const cookie = getCookie(c, cookieName(loginCookie, https));
  let identity: Identity | undefined;
  if (bearer !== undefined) identity = access.byToken(bearer, options.now());
  else if (cookie !== undefined) identity = access.byCookie(cookie, options.now());
  if (identity) return { ...identity, from, https };
  if (bearer !== undefined) {
    const seconds = options.wrongTokens.take(from);
    if (seconds > 0) throw tooMany(seconds);
  }
  return undefined;
}

export function requireRole(
  spec: Pick<RouteSpec, "id" | "role">,
  caller: Caller | undefined,
): Caller | undefined {
  if (spec.role === "public") return caller;
  if (!caller) {
    throw new Problem({
      status: 401,
      code: "unauthorized",
      message: "A valid token is needed",
      hint: "Send Authorization: Bearer <token>, or log in with POST /api/login.",
    });
  }
  if (!roleAllows(caller.role, spec.role)) {
    throw new Problem({
      status: 403,
      code: "forbidden",
      message: `${spec.id} needs the role ${spec.role}; this token is a ${caller.role}'s`,
    });
  }
  return caller;
}

/** For every POST, the login included: a page of another site must not act in our user's name. */
export function requireOwnPage(c: Context): void {
  const allowed = writeAllowedFrom({
    origin: c.req.header("origin"),
    secFetchSite: c.req.header("sec-fetch-site"),
    host: c.req.header("host"),
  });
  if (!allowed) {
    throw new Problem({
      status: 403,
      code: "foreign_origin",
      message:
        "Requests that change something are accepted only from the gateway's own pages and from programs",
    });
  }
}

export function requireWritable(spec: RouteSpec, readOnly: boolean): void {
  if (!readOnly || !changesThings(spec)) return;
  throw new Problem({
    status: 403,
    code: "read_only",
    message: "This gateway is read-only",
    hint: "It was started with GATEWAY_READ_ONLY=true.",
  });
}
