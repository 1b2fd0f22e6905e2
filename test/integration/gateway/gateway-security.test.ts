import { readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../services/config.ts";
import { gatewayConfig, gatewaySettings } from "../../../services/gateway/config.ts";
import { openApiPath } from "../../../services/gateway/http/openapi.ts";
import type { RouteSpec } from "../../../services/gateway/http/route.ts";
import { allRoutes, openApiOf } from "../../../services/gateway/routes/index.ts";
import { packageDir, packageVersion } from "../../../services/version.ts";
import { eventually, hands, json, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import type { TestNats } from "../../support/nats/nats-server.ts";
import { startServer } from "../../support/nats/secured-nats.ts";

const tokens = [
  { role: "viewer", name: "vera", token: "viewer-token-0123456789abcdef" },
  { role: "operator", name: "otto", token: "operator-token-0123456789abcdef" },
  { role: "admin", name: "ada", token: "admin-token-0123456789abcdef" },
] as const;
const bearer = (role: string) => ({
  authorization: `Bearer ${tokens.find((token) => token.role === role)?.token}`,
});

let nats: TestNats;
let guarded: TestGateway;
let readOnly: TestGateway;

beforeAll(async () => {
  nats = await startServer();
  guarded = await startGateway(nats.url, { tokens: [...tokens], allowedHosts: ["flows.example"] });
  readOnly = await startGateway(nats.url, { readOnly: true });
});
afterAll(async () => {
  await guarded?.stop();
  await readOnly?.stop();
  await nats?.stop();
});

/** The list itself needs no parts: only acting does. */
const routes: RouteSpec[] = allRoutes({} as Parameters<typeof allRoutes>[0]);
const sample: Record<string, string> = { id: "some-id", name: "some-name", event: "go", seq: "1" };
const addressOf = (spec: RouteSpec) => spec.path.replace(/:([A-Za-z]+)/g, (_, name) => sample[name] ?? "x");
const call = (gateway: TestGateway, spec: RouteSpec, headers: Record<string, string>, body: unknown = {}) =>
  spec.method === "get"
    ? gateway.get(addressOf(spec), headers)
    : gateway.post(addressOf(spec), body, headers);
const lesser: Record<string, string | undefined> = { operator: "viewer", admin: "operator" };

/** Not every check fits every route; what does not fit is no test at all, rather than one skipped. */
const when = (fits: unknown): ((what: string, test: () => Promise<void>) => void) =>
  fits ? (what, test) => it(what, test) : () => undefined;

describe.each(
  routes
    .filter((spec) => spec.role !== "public")
    .map((spec) => [`${spec.method} ${spec.path}`, spec] as const),
)("%s", (_, spec) => {
  it("refuses no token and a wrong token", async () => {
    for (const headers of [{}, { authorization: "Bearer wrong-token-0123456789abcdef" }]) {
      const response = await call(guarded, spec, headers as Record<string, string>);
      // Guessing is limited too: after some wrong tokens the answer is to wait.
      expect([401, 429]).toContain(response.status);
      expect(await json(response)).toMatchObject({ ok: false });
    }
  });

  const less = typeof spec.role === "string" ? lesser[spec.role] : undefined;
  when(less)("refuses a lesser role", async () => {
    const response = await call(guarded, spec, bearer(less ?? ""));
    expect(response.status).toBe(403);
    expect(await json(response)).toMatchObject({ error: { code: "forbidden" } });
  });

  when(spec.params)("refuses an id that is none", async () => {
    const path = spec.path.replace(/:([A-Za-z]+)/g, "a%20b.%3E");
    const response = await (spec.method === "get"
      ? guarded.get(path, bearer("admin"))
      : guarded.post(path, {}, bearer("admin")));
    expect(response.status).toBe(400);
    expect(await json(response)).toMatchObject({ error: { code: "invalid_input" } });
  });

  when(spec.query)("refuses a query that is none", async () => {
    const response = await guarded.get(
      `${addressOf(spec)}?limit=none&wait=ever&execution=x&all=maybe&phase=${"x".repeat(200)}`,
      bearer("admin"),
    );
    expect(response.status).toBe(400);
  });

  when(spec.body)("refuses a body that is none", async () => {
    const surplus = await guarded.post(addressOf(spec), { surplus: true }, bearer("admin"));
    expect(surplus.status).toBe(400);
    const broken = await guarded.post(addressOf(spec), "{", bearer("admin"));
    expect(await json(broken)).toMatchObject({ error: { code: "not_json" } });
    const form = await guarded.post(addressOf(spec), "a=b", {
      ...bearer("admin"),
      "content-type": "application/x-www-form-urlencoded",
    });
    expect(form.status).toBe(415);
  });

  when(spec.method === "post")("refuses another site's page", async () => {
    const foreign: Record<string, string>[] = [
      { origin: "https://evil.example" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: "null" },
    ];
    for (const headers of foreign) {
      const response = await raw(guarded, spec.method, addressOf(spec), { ...bearer("admin"), ...headers });
      expect(response.status).toBe(403);
      expect(JSON.parse(response.body)).toMatchObject({ error: { code: "foreign_origin" } });
    }
  });

  when(spec.method === "post")(
    "changes nothing in read-only mode, and every change is in the audit",
    async () => {
      expect(spec.audit).toBeDefined();
      const response = await call(readOnly, spec, {});
      expect(response.status).toBe(403);
      expect(await json(response)).toMatchObject({ error: { code: "read_only" } });
    },
  );
});

describe("the gateway's door", () => {
  it("takes each token for its role", async () => {
    for (const { role, name } of tokens) {
      expect(await json(await guarded.get("/api/whoami", bearer(role)))).toMatchObject({ name, role });
    }
  });

  it("exchanges a token for a cookie no script can read, and forgets it", async () => {
    const response = await guarded.post("/api/login", { token: tokens[1].token });
    const cookie = response.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^holdfast=[^;]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/);
    expect(cookie).not.toContain(tokens[1].token);
    const value = cookie.split(";")[0] ?? "";
    expect(await json(await guarded.get("/api/whoami", { cookie: value }))).toMatchObject({
      role: "operator",
    });
    const ofAdmin = (await guarded.post("/api/login", { token: tokens[2].token })).headers.get("set-cookie");
    const adminId = /=([^.]+)\./.exec(ofAdmin ?? "")?.[1];
    const forged = value.replace(/=[^.]+\./, `=${adminId}.`);
    expect(forged).not.toBe(value);
    expect((await guarded.get("/api/whoami", { cookie: forged })).status).toBe(401);
    const later = value.replace(/\.(\d+)\./, (_, at) => `.${Number(at) + 1}.`);
    expect((await guarded.get("/api/whoami", { cookie: later })).status).toBe(401);
    const gone = await guarded.post("/api/logout", {});
    expect(gone.headers.get("set-cookie")).toContain("Max-Age=0");
  });

  it("answers only to names it knows", async () => {
    const get = (host: string) => raw(guarded, "get", "/api/whoami", { ...bearer("viewer"), host });
    expect((await get("evil.example")).status).toBe(421);
    expect((await get("localhost.evil.example")).status).toBe(421);
    expect((await get("flows.example:8080")).status).toBe(200);
    expect((await get("localhost:1")).status).toBe(200);
    expect((await get("[::1]:1")).status).toBe(200);
  });

  it("sends a policy without inline scripts on every answer", async () => {
    for (const path of ["/", "/api/whoami", "/livez", "/api/none"]) {
      const { headers } = await guarded.get(path);
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain("unsafe");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
  });

  it("refuses bodies that are too big or too deep", async () => {
    const big = await guarded.post(
      "/api/orchestrations/x",
      { input: "x".repeat(5_000_000) },
      bearer("operator"),
    );
    expect(big.status).toBe(413);
    const deep = `{"input":${"[".repeat(5000)}${"]".repeat(5000)}}`;
    expect((await guarded.post("/api/orchestrations/x", deep, bearer("operator"))).status).toBe(400);
  });

  it("limits the rate of one caller and the guessing of tokens", async () => {
    const limited = await startGateway(nats.url, { requestsPerSecond: 5, tokens: [...tokens] });
    try {
      const statuses = await Promise.all(
        Array.from({ length: 60 }, () => limited.get("/api/whoami", bearer("viewer")).then((r) => r.status)),
      );
      expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(20);
      expect(statuses).toContain(429);
      const guesses = [];
      for (let i = 0; i < 14; i++) {
        guesses.push((await limited.post("/api/login", { token: `guess-${i}-0123456789abcdef` })).status);
      }
      expect(guesses).toContain(429);
      const refused = await limited.get("/api/whoami", bearer("viewer"));
      if (refused.status === 429) expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    } finally {
      await limited.stop();
    }
  });

  it.each(["header", "log-in"])(
    "limits the guessing of tokens by %s, and keeps nobody out who has one",
    async (way) => {
      await using own = await startGateway(nats.url, { tokens: [...tokens] });
      const guesses: number[] = [];
      for (let i = 0; i < 14; i++) {
        const token = `guess-${i}-0123456789abcdef`;
        const guess =
          way === "header"
            ? own.get("/api/whoami", { authorization: `Bearer ${token}` })
            : own.post("/api/login", { token });
        guesses.push((await guess).status);
      }
      expect([guesses.at(0), guesses.at(-1)]).toEqual([401, 429]);
      expect((await own.get("/api/whoami", bearer("viewer"))).status).toBe(200);
    },
  );

  it("guards a call whose chunks are streamed like any other change", async () => {
    const path = "/api/sessions/box/k1/ask";
    const sse = { accept: "text/event-stream" };
    const refused = async (gateway: TestGateway, headers: Record<string, string>) => {
      const { status, body } = await raw(gateway, "post", path, { ...sse, ...headers });
      return [status, JSON.parse(body).error.code];
    };
    expect(await refused(guarded, {})).toEqual([401, "unauthorized"]);
    expect(await refused(guarded, bearer("viewer"))).toEqual([403, "forbidden"]);
    const foreign = { ...bearer("operator"), origin: "https://evil.example" };
    expect(await refused(guarded, foreign)).toEqual([403, "foreign_origin"]);
    expect(await refused(readOnly, {})).toEqual([403, "read_only"]);
  });

  it("guards metrics and live events like any other route", async () => {
    expect([401, 429]).toContain((await guarded.get("/metrics")).status);
    expect([401, 429]).toContain((await guarded.get("/api/events")).status);
    expect((await guarded.get("/metrics", bearer("viewer"))).status).toBe(200);
  });

  it("answers probes without a token", async () => {
    expect((await guarded.get("/livez")).status).toBe(200);
    expect((await guarded.get("/readyz")).status).toBe(200);
    expect(await json(await guarded.get("/version"))).toMatchObject({ name: "holdfast" });
  });

  it("tells what it does not know from what failed", async () => {
    expect(await json(await guarded.get("/api/none"))).toMatchObject({ error: { code: "no_such_route" } });
    expect((await guarded.get("/nothing.js")).status).toBe(404);
  });

  it("writes the caller's name into the audit", async () => {
    await hands(guarded.bus).instance({ instanceId: "audited" });
    await eventually(
      async () => (await guarded.get("/api/instances/audited", bearer("viewer"))).ok,
      "the row",
    );
    await guarded.post("/api/instances/audited/cancel", { reason: "because" }, bearer("operator"));
    const { entries } = await json(await guarded.get("/api/audit", bearer("admin")));
    expect((entries as unknown[])[0]).toMatchObject({
      who: "otto",
      role: "operator",
      action: "cancelInstance",
      target: "audited",
      with: { reason: "because" },
    });
  });
});

describe("settings", () => {
  const config = (env: Record<string, string>) =>
    gatewayConfig(readConfig(env, "gateway", gatewaySettings).settings, () => "made-up-token-0123456789");

  it("refuses another address than loopback without tokens", () => {
    expect(() => config({ GATEWAY_HOST: "0.0.0.0" })).toThrow(
      /GATEWAY_HOST=0\.0\.0\.0 would admit every client/,
    );
    expect(
      config({ GATEWAY_HOST: "0.0.0.0", GATEWAY_TOKENS: "admin:0123456789012345678901" }).tokens,
    ).toHaveLength(1);
    expect(config({ GATEWAY_HOST: "0.0.0.0", GATEWAY_TOKENS: "generate" }).generatedToken).toBe(
      "made-up-token-0123456789",
    );
    expect(config({}).host).toBe("127.0.0.1");
  });

  it("refuses weak tokens and unknown roles, naming the variable and never the token", () => {
    expect(() => config({ GATEWAY_TOKENS: "admin:short" })).toThrow(
      /GATEWAY_TOKENS: entry 1 has a token that is too short/,
    );
    expect(() => config({ GATEWAY_TOKENS: "king:0123456789012345678901" })).toThrow(
      /GATEWAY_TOKENS: entry 1 is not role:token/,
    );
    expect(() => config({ GATEWAY_TOKENS: "admin:short" })).not.toThrow(/admin:short/);
  });
});

describe("the OpenAPI file", () => {
  it("matches the routes and is the one in docs", async () => {
    const served = await json(await readOnly.get("/api/openapi.json"));
    const paths = served.paths as Record<string, Record<string, { operationId: string }>>;
    const listed = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => `${method} ${path} ${operation.operationId}`),
    );
    expect(listed.sort()).toEqual(
      routes.map((spec) => `${spec.method} ${openApiPath(spec.path)} ${spec.id}`).sort(),
    );
    const committed: unknown = JSON.parse(readFileSync(join(packageDir(), "docs", "openapi.json"), "utf8"));
    expect(committed, "run: npm run openapi").toEqual(
      JSON.parse(JSON.stringify(openApiOf(routes, packageVersion()))),
    );
  });

  it("refers only to what it defines", () => {
    const text = JSON.stringify(openApiOf(routes, "0"));
    const defined = Object.keys((JSON.parse(text).components as { schemas: object }).schemas);
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      expect(defined).toContain(name);
    expect(text).not.toContain("__schema");
  });
});

/** fetch does not let a caller set Host, Origin or Sec-Fetch-Site. */
function raw(
  gateway: TestGateway,
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(gateway.url);
    const asked = request(
      {
        hostname,
        port,
        path,
        method: method.toUpperCase(),
        headers: { "content-type": "application/json", ...headers },
      },
      (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          body += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    asked.on("error", reject);
    asked.end(method === "post" ? "{}" : undefined);
  });
}
