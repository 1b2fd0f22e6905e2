/**
 * `GET /api/oidc/login` sends a browser to the log-in provider, which sends it back to `GET
 * /api/oidc/callback`. Both answer with a redirect: after a failure people see the dashboard's own log-in
 * page.
 */
import type { Hono } from "hono";
import { getCookie } from "hono/cookie";
import type { GatewayParts } from "../routes/index.ts";
import { cookieName, loginCookie, oidcCookie, setCookie } from "../security/index.ts";
import { tooMany, toProblem } from "./problem.ts";

type OidcParts = Pick<GatewayParts, "access" | "origins" | "runtime" | "audit" | "config" | "wrongTokens">;

export function addOidcLogin(app: Hono, parts: OidcParts): void {
  const { access, origins, runtime, audit, config } = parts;
  const { oidc } = access;
  if (!oidc) return;
  /** The log-in page reads the reason off the address. */
  const failed = ({ code }: { code: string }) => `/?login=${encodeURIComponent(code)}`;

  app.get("/api/oidc/login", async (c) => {
    const https = origins.isHttps(c);
    c.header("cache-control", "no-store");
    try {
      const { address, cookie, maxAgeSeconds } = await oidc.begin(
        c.req.query("to") ?? "/",
        runtime.clock.now(),
      );
      // Lax: the provider's page sends the browser back here.
      c.header("set-cookie", setCookie(oidcCookie, cookie, { https, maxAgeSeconds, sameSite: "Lax" }));
      return c.redirect(address, 302);
    } catch (error) {
      return c.redirect(failed(toProblem(error).init), 302);
    }
  });

  app.get("/api/oidc/callback", async (c) => {
    const https = origins.isHttps(c);
    const from = origins.addressOf(c);
    c.header("cache-control", "no-store");
    const clear = setCookie(oidcCookie, "", { https, maxAgeSeconds: 0, sameSite: "Lax" });
    c.header("set-cookie", clear);
    try {
      const cookie = getCookie(c, cookieName(oidcCookie, https)) ?? "";
      // The provider knows the address people use, which need not be the one we listen on.
      const address = new URL(`${config.publicUrl}/api/oidc/callback${new URL(c.req.url).search}`);
      const outcome = await oidc.finish(address, cookie, runtime.clock.now());
      if (outcome.kind === "no-role") {
        await audit.failed(
          { name: outcome.name, role: "viewer", payloads: false, from, https },
          { action: "login", target: outcome.name },
          "no group of this person has a role",
        );
        return c.redirect(failed({ code: "oidc_no_role" }), 302);
      }
      const { identity, to } = outcome;
      await audit.asked({ ...identity, from, https }, { action: "login", target: identity.name });
      const maxAgeSeconds = Math.floor(oidc.sessionMs / 1000);
      c.header("set-cookie", setCookie(loginCookie, outcome.cookie, { https, maxAgeSeconds }), {
        append: true,
      });
      return c.redirect(to, 302);
    } catch (error) {
      const seconds = parts.wrongTokens.take(from);
      const problem = seconds > 0 ? tooMany(seconds) : toProblem(error);
      runtime.announce({
        kind: "fault",
        where: "gateway",
        code: problem.init.code,
        message: `log-in refused: ${problem.init.message}`,
      });
      return c.redirect(failed(problem.init), 302);
    }
  });
}
