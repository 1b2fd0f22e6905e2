/** API tokens: issue, list, revoke. */
import { z } from "zod";
import { Name } from "../../../schemas/index.ts";
import { parseDuration } from "../../../shared/runtime/index.ts";
import { notFound, Problem } from "../http/problem.ts";
import { type RouteSpec, route } from "../http/route.ts";
import { ApiToken, roles } from "../security/index.ts";
import type { GatewayParts } from "./context.ts";

const tag = "tokens";
const longestMs = 366 * 24 * 3_600_000;
const shortestMs = 60_000;

export const TokenIssued = z.strictObject({
  ok: z.literal(true),
  /** Shown this once. */
  token: z.string(),
  issued: ApiToken,
});
export const TokenList = z.strictObject({ rows: z.array(ApiToken) });
export const TokenRevoked = z.strictObject({ ok: z.literal(true), id: z.string() });

export function tokenRoutes({ issuedTokens, runtime, config }: GatewayParts): RouteSpec[] {
  return [
    route({
      id: "issueToken",
      method: "post",
      path: "/api/tokens",
      tag,
      summary: "Issue an API token with a role, a scope and an end. The token is in the answer, this once.",
      role: "admin",
      body: z.strictObject({
        name: z.string().regex(/^[A-Za-z0-9_.@-]{1,64}$/, "letters, digits and _ . @ - only"),
        role: z.enum(roles),
        payloads: z
          .boolean()
          .default(false)
          .meta({ description: "May see users' values whatever GATEWAY_PAYLOADS says" }),
        expiresIn: z.string().max(32).meta({ description: "A duration such as 12h or 90d, at most 366d" }),
        operations: z
          .array(z.string().max(64))
          .min(1)
          .max(100)
          .optional()
          .meta({ description: "Operation ids of this file; absent: all that the role allows" }),
        orchestrations: z
          .array(Name)
          .min(1)
          .max(100)
          .optional()
          .meta({ description: "Only these and their instances; absent: the whole installation" }),
      }),
      answer: TokenIssued,
      audit: ({ body }) => ({
        target: body.name,
        with: { role: body.role, expiresIn: body.expiresIn, ...(body.payloads && { payloads: "granted" }) },
      }),
      async act({ body: { expiresIn, ...wanted }, caller }) {
        if (config.tokens.length === 0 && config.oidc === undefined)
          throw new Problem({
            status: 409,
            code: "tokens_not_asked_for",
            message: "This gateway admits every caller without a token: a token would change nothing",
            hint: "Set GATEWAY_TOKENS or GATEWAY_OIDC_ISSUER first.",
          });
        const lastsMs = parseDuration(expiresIn, "expiresIn");
        if (lastsMs < shortestMs || lastsMs > longestMs)
          throw new Problem({
            status: 400,
            code: "invalid_input",
            message: "body expiresIn: must be from 1m to 366d",
          });
        const now = runtime.clock.now();
        const { token, shown } = await issuedTokens.issue(
          { ...wanted, expiresAt: now + lastsMs },
          caller.name,
          now,
        );
        return { ok: true as const, token, issued: shown };
      },
    }),
    route({
      id: "listTokens",
      method: "get",
      path: "/api/tokens",
      tag,
      summary: "API tokens that were issued, latest first; never the tokens themselves",
      role: "admin",
      answer: TokenList,
      act: () => ({ rows: issuedTokens.list() }),
    }),
    route({
      id: "revokeToken",
      method: "post",
      path: "/api/tokens/:id/revoke",
      tag,
      summary: "End an API token, and every browser logged in with it, at once and everywhere",
      role: "admin",
      params: z.object({ id: z.string().regex(/^[A-Za-z0-9-]{1,32}$/, "is not the id of a token") }),
      body: z.strictObject({}),
      answer: TokenRevoked,
      audit: ({ params }) => ({ target: params.id }),
      async act({ params, caller }) {
        const found = await issuedTokens.revoke(params.id, caller.name, runtime.clock.now());
        if (!found) throw notFound("token", params.id);
        return { ok: true as const, id: params.id };
      },
    }),
  ];
}
