/** The installation as a whole, and the caller's identity. */
import { z } from "zod";
import { AuditEntry, ServiceInfo } from "../../../schemas/index.ts";
import { Problem, tooMany } from "../http/problem.ts";
import { Reply, type RouteSpec, route } from "../http/route.ts";
import { Overview } from "../live/overview.ts";
import { loginCookie, noUsersValue, roles, setCookie } from "../security/index.ts";
import type { GatewayParts } from "./context.ts";

const tag = "system";
export const Whoami = z.strictObject({
  name: z.string(),
  role: z.enum(roles),
  /** False: users' values are shown as their shapes. */
  payloads: z.boolean(),
  readOnly: z.boolean(),
  /** False if the gateway requires neither token nor log-in. */
  tokensRequired: z.boolean(),
  version: z.string(),
  /** The prefix of every subject; empty string without one. */
  prefix: z.string(),
});
export const Orchestrations = z.strictObject({
  orchestrations: z.array(
    z.strictObject({
      name: z.string(),
      /** JSON Schema of the input, if the definition has one. */
      input: noUsersValue(z.unknown()).optional(),
      /** True if a live orchestrator serves it. */
      served: z.boolean(),
    }),
  ),
});
export const AuditList = z.strictObject({ entries: z.array(AuditEntry) });
export const LoggedIn = z.strictObject({ ok: z.literal(true), name: z.string(), role: z.enum(roles) });
export const LoggedOut = z.strictObject({ ok: z.literal(true) });
export const LoginWays = z.strictObject({ token: z.boolean(), oidc: z.boolean() });
export const ServiceList = z.strictObject({ rows: z.array(noUsersValue(ServiceInfo)) });

export function systemRoutes(parts: GatewayParts): RouteSpec[] {
  const { live, audit, access, config, runtime, version } = parts;
  return [
    route({
      id: "login",
      method: "post",
      path: "/api/login",
      tag,
      summary: "Exchange a token for a cookie, for browsers",
      role: "public",
      offline: true,
      body: z.strictObject({ token: z.string().max(1024) }),
      answer: LoggedIn,
      act({ body, caller }) {
        const found = access.logIn(body.token, runtime.clock.now());
        if (!found) {
          const seconds = parts.wrongTokens.take(caller.from);
          if (seconds > 0) throw tooMany(seconds);
          throw new Problem({ status: 401, code: "bad_token", message: "The token is not known" });
        }
        const { cookie, maxAgeSeconds, identity } = found;
        return new Reply(
          { ok: true, name: identity.name, role: identity.role },
          { "set-cookie": setCookie(loginCookie, cookie, { https: caller.https, maxAgeSeconds }) },
        );
      },
    }),
    route({
      id: "logout",
      method: "post",
      path: "/api/logout",
      tag,
      summary: "Forget the cookie",
      role: "public",
      offline: true,
      body: z.strictObject({}),
      answer: LoggedOut,
      act: ({ caller: { https } }) =>
        new Reply({ ok: true }, { "set-cookie": setCookie(loginCookie, "", { https, maxAgeSeconds: 0 }) }),
    }),
    route({
      id: "loginWays",
      method: "get",
      path: "/api/login-ways",
      tag,
      summary: "How people log in here: with a token, or with the provider behind GET /api/oidc/login",
      role: "public",
      offline: true,
      answer: LoginWays,
      act: () => ({ token: config.tokens.length > 0, oidc: access.oidc !== undefined }),
    }),
    route({
      id: "whoami",
      method: "get",
      path: "/api/whoami",
      tag,
      summary: "The caller's name and role, and what this gateway allows",
      role: "viewer",
      offline: true,
      answer: Whoami,
      act: ({ caller }) => ({
        name: caller.name,
        role: caller.role,
        payloads: caller.payloads,
        readOnly: config.readOnly,
        tokensRequired: access.required,
        version,
        prefix: parts.names.prefix,
      }),
    }),
    route({
      id: "getOverview",
      method: "get",
      path: "/api/overview",
      tag,
      summary: "Counts, rates, latencies, and problems in sentences",
      role: "viewer",
      offline: true,
      answer: Overview,
      act: () => parts.overview(),
    }),
    route({
      id: "listOrchestrations",
      method: "get",
      path: "/api/orchestrations",
      tag,
      summary: "Orchestrations that can be started, with the JSON Schema of their input",
      role: "viewer",
      answer: Orchestrations,
      act() {
        const served = new Map<string, unknown>();
        for (const service of live.services()) {
          for (const [name, schema] of Object.entries(service.orchestrations ?? {})) served.set(name, schema);
        }
        const seen = live.instances.names().filter((name) => !served.has(name));
        return {
          orchestrations: [
            ...[...served]
              .sort(([a], [b]) => (a < b ? -1 : 1))
              .map(([name, input]) => ({
                name,
                served: true,
                ...(input === undefined || input === null ? {} : { input }),
              })),
            ...seen.map((name) => ({ name, served: false })),
          ],
        };
      },
    }),
    route({
      id: "listServices",
      method: "get",
      path: "/api/services",
      tag,
      summary: "Orchestrators, watchers and gateways that are alive",
      role: "viewer",
      answer: ServiceList,
      act: () => ({ rows: live.services() }),
    }),
    route({
      id: "listAudit",
      method: "get",
      path: "/api/audit",
      tag,
      summary: "The audit: each action with its caller, latest first",
      role: "admin",
      query: z.object({ limit: z.coerce.number().int().min(1).max(1000).default(100) }),
      answer: AuditList,
      async act({ query }) {
        return { entries: await audit.entries(query.limit) };
      },
    }),
  ];
}
