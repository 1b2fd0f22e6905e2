/** The right to see users' values, issued tokens, cookies and rates behind proxies, bounded downloads. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { headerNames } from "../../../shared/bus/index.ts";
import {
  eventually,
  hands,
  json,
  startGateway,
  type TestGateway,
  writeHistory,
} from "../../support/gateway/gateway.ts";
import type { TestNats } from "../../support/nats/nats-server.ts";
import { startServer } from "../../support/nats/secured-nats.ts";

const tokens = [
  { role: "viewer", name: "vera", token: "viewer-token-0123456789abcdef" },
  { role: "viewer", name: "paul", token: "payload-token-0123456789abcdef", payloads: true },
  { role: "operator", name: "otto", token: "operator-token-0123456789abcdef" },
  { role: "admin", name: "ada", token: "admin-token-0123456789abcdef" },
] as const;
const as = (name: string) => ({
  authorization: `Bearer ${tokens.find((token) => token.name === name)?.token}`,
});
const secret = "S3CRET";
const failure = { code: "boom", message: `no ${secret}`, retryable: false, details: { secret } };

let nats: TestNats;
let gateway: TestGateway;
let second: TestGateway;

beforeAll(async () => {
  nats = await startServer();
  const config = { tokens: [...tokens], payloadReaders: "operator", maxHistoryBytes: 100_000 } as const;
  gateway = await startGateway(nats.url, { ...config, trustedProxies: ["127.0.0.1"] });
  second = await startGateway(nats.url, config);
  const put = hands(gateway.bus);
  const now = Date.now();
  await put.instance({
    instanceId: "i1",
    status: "failed",
    input: { json: { card: secret } },
    customStatus: { json: secret },
    error: failure,
  });
  await put.instance({ instanceId: "other", name: "another" });
  await writeHistory(gateway.history, "i1", [
    {
      at: now,
      events: [
        { kind: "instance.started", name: "demo", input: { json: { card: secret } } },
        { kind: "signal.received", name: "go", payload: { json: secret } },
        { kind: "instance.failed", error: failure },
      ],
    },
  ]);
  await put.session({ sessionId: "s1", phase: "failed", error: failure });
  await put.dead({ what: "start", id: "d1", subject: "x", body: secret, message: `no ${secret}` });
  await eventually(
    async () => (await json(await gateway.get("/api/instances", as("ada")))).matching === 2,
    "both rows",
  );
  await eventually(async () => (await gateway.get("/api/sessions/s1", as("ada"))).ok, "the session");
});
afterAll(async () => {
  await gateway?.stop();
  await second?.stop();
  await nats?.stop();
});

const audit = async () =>
  (await json(await gateway.get("/api/audit", as("ada")))).entries as { who: string }[];

describe("users' values", () => {
  const shown = [
    "/api/instances",
    "/api/instances/i1",
    "/api/instances/i1/history",
    "/api/instances/i1/result",
    "/api/sessions",
    "/api/sessions/s1",
    "/api/sessions/s1/explain",
    "/api/dead",
    "/api/dead/1",
  ];

  it.each(shown)("%s shows them to who may see them, and their shapes to others", async (path) => {
    const hidden = await gateway.get(path, as("vera"));
    expect(hidden.status).toBe(200);
    const text = await hidden.text();
    expect(text).not.toContain(secret);
    expect(text, "but that there is one").toContain("text of ");
    for (const name of ["paul", "otto"])
      expect(await (await gateway.get(path, as(name))).text(), name).toContain(secret);
  });

  it("are not found by searching for them either", async () => {
    const found = async (name: string) =>
      (await json(await gateway.get(`/api/instances?text=${secret}`, as(name)))).matching;
    expect(await found("vera")).toBe(0);
    expect(await found("otto")).toBe(1);
  });

  it("are refused where there is nothing but them", async () => {
    for (const path of [
      "/api/instances/i1/history?download=true",
      `/api/instances/i1/blobs/${"0".repeat(64)}`,
      "/api/sessions/s1/blobs/notes",
    ]) {
      const response = await gateway.get(path, as("vera"));
      expect(response.status, path).toBe(403);
      expect(await json(response)).toMatchObject({ error: { code: "payloads_hidden" } });
    }
    expect((await gateway.get("/api/instances/i1/history?download=true", as("paul"))).status).toBe(200);
  });

  it("are hidden in live events", async () => {
    const heard = async (name: string) => {
      const abort = new AbortController();
      const events = await fetch(`${gateway.url}/api/events?topics=instances`, {
        headers: as(name),
        signal: abort.signal,
      });
      const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      while (!text.includes("event: instances")) {
        if (!text.includes("hello")) text += (await reader?.read())?.value ?? "";
        await hands(gateway.bus).instance({ instanceId: "i1", status: "failed", error: failure });
        text += (await reader?.read())?.value ?? "";
      }
      abort.abort();
      return text;
    };
    expect(await heard("vera")).not.toContain(secret);
    expect(await heard("otto")).toContain(secret);
  });

  it("are in the audit once a minute for who read them, and not for who saw shapes", async () => {
    await gateway.get("/api/instances/i1", as("paul"));
    await gateway.get("/api/instances/i1", as("paul"));
    await gateway.get("/api/instances/i1", as("vera"));
    const entries = await audit();
    const reads = entries.filter((entry) => "action" in entry && entry.action === "getInstance");
    expect(reads.filter(({ who }) => who === "paul")).toHaveLength(1);
    expect(reads.filter(({ who }) => who === "vera")).toHaveLength(0);
    expect(reads.find(({ who }) => who === "paul")).toMatchObject({ target: "i1", outcome: "asked" });
  });

  it("come whole or not at all: a history larger than one request may read is refused", async () => {
    await writeHistory(gateway.history, "long", [
      {
        at: Date.now(),
        events: [
          { kind: "instance.started", name: "demo", input: { json: "x".repeat(60_000) } },
          { kind: "signal.received", name: "go", payload: { json: "x".repeat(60_000) } },
        ],
      },
    ]);
    for (const path of ["/api/instances/long/history?download=true", "/api/instances/long/history"]) {
      const response = await gateway.get(path, as("otto"));
      expect(response.status).toBe(413);
      expect(await json(response)).toMatchObject({ error: { code: "history_too_large" } });
    }
  });
});

describe("issued tokens", () => {
  const issue = async (body: Record<string, unknown>) =>
    (await json(
      await gateway.post(
        "/api/tokens",
        { name: "ci", role: "operator", expiresIn: "1h", ...body },
        as("ada"),
      ),
    )) as { token: string; issued: { id: string } };
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it("admit with their role on every gateway, and nowhere once revoked", async () => {
    const { token, issued } = await issue({});
    expect(await json(await gateway.get("/api/whoami", bearer(token)))).toMatchObject({ name: "ci" });
    await eventually(async () => (await second.get("/api/whoami", bearer(token))).ok, "the other gateway");
    expect((await gateway.get("/api/audit", bearer(token))).status, "no more than the role").toBe(403);
    const login = await gateway.post("/api/login", { token });
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    expect((await gateway.get("/api/whoami", { cookie })).status).toBe(200);

    expect((await gateway.post(`/api/tokens/${issued.id}/revoke`, {}, as("ada"))).status).toBe(200);
    expect((await gateway.get("/api/whoami", bearer(token))).status).toBe(401);
    expect((await gateway.get("/api/whoami", { cookie })).status, "nor the browser").toBe(401);
    await eventually(
      async () => (await second.get("/api/whoami", bearer(token))).status === 401,
      "the other gateway",
    );
    const listed = await (await gateway.get("/api/tokens", as("ada"))).text();
    expect(listed).toContain("revokedAt");
    expect(listed).not.toContain(token);
    expect((await gateway.post("/api/tokens/000000000000/revoke", {}, as("ada"))).status).toBe(404);
  });

  it("are stored as digests", async () => {
    const { token, issued } = await issue({});
    const stored = await gateway.bus.last("KV_settings", `$KV.settings.api-token.${issued.id}`);
    const text = new TextDecoder().decode(stored?.body);
    expect(text).toContain(issued.id);
    expect(text).not.toContain(token.split("_")[2]);
    expect(stored?.headers[headerNames.kvOperation]).toBeUndefined();
  });

  it("are over at their end", async () => {
    const { token, issued } = await issue({ expiresIn: "1m" });
    const subject = `$KV.settings.api-token.${issued.id}`;
    const stored = await gateway.bus.last("KV_settings", subject);
    const past = { ...JSON.parse(new TextDecoder().decode(stored?.body)), expiresAt: Date.now() - 1 };
    await gateway.bus.publish(subject, new TextEncoder().encode(JSON.stringify(past)));
    await eventually(async () => (await gateway.get("/api/whoami", bearer(token))).status === 401, "its end");
    for (const expiresIn of ["1s", "800d", "soon"])
      expect(
        (await gateway.post("/api/tokens", { name: "x", role: "viewer", expiresIn }, as("ada"))).status,
        expiresIn,
      ).toBe(400);
  });

  it("reach only their operations and their orchestrations", async () => {
    const { token } = await issue({ orchestrations: ["demo"] });
    const may = async (path: string) => (await gateway.get(path, bearer(token))).status;
    expect(await may("/api/instances/i1")).toBe(200);
    expect(await may("/api/instances/other"), "another orchestration").toBe(403);
    expect(await may("/api/instances/none"), "does not say which ids are taken").toBe(403);
    expect(await may("/api/sessions"), "the whole installation").toBe(403);
    expect(await may("/metrics")).toBe(403);
    expect(await may("/api/events?topics=instances")).toBe(403);
    expect(await may("/api/events?topics=instances&instance=other")).toBe(403);
    const sse = { accept: "text/event-stream", ...bearer(token) };
    expect((await gateway.get("/api/instances/other/stream", sse)).status).toBe(403);
    expect((await gateway.post("/api/sessions/box/k1/ask", {}, sse)).status).toBe(403);
    expect(await may("/api/whoami")).toBe(200);
    const { rows } = await json(await gateway.get("/api/instances", bearer(token)));
    expect((rows as { name: string }[]).map(({ name }) => name)).toEqual(["demo"]);
    const start = (name: string) => gateway.post(`/api/orchestrations/${name}`, {}, bearer(token));
    expect((await start("another")).status).toBe(403);
    expect((await start("demo")).status).toBe(202);

    const narrow = await issue({ operations: ["startOrchestration"] });
    expect((await gateway.get("/api/instances/i1", bearer(narrow.token))).status).toBe(403);
    expect((await gateway.post("/api/orchestrations/demo", {}, bearer(narrow.token))).status).toBe(202);
  });

  it("are issued by administrators alone, and not where nobody is asked who they are", async () => {
    await using open = await startGateway(nats.url);
    const body = { name: "x", role: "admin", expiresIn: "1h" };
    expect((await gateway.post("/api/tokens", body, as("otto"))).status).toBe(403);
    expect(await json(await open.post("/api/tokens", body))).toMatchObject({
      error: { code: "tokens_not_asked_for" },
    });
  });

  it("that were put into the bucket broken admit nobody", async () => {
    const { token, issued } = await issue({});
    await gateway.bus.publish(`$KV.settings.api-token.${issued.id}`, new TextEncoder().encode('{"v":1}'));
    await eventually(async () => (await gateway.get("/api/whoami", bearer(token))).status === 401, "refused");
  });
});

describe("behind a proxy", () => {
  it("uses cookies that only https and this host carry", async () => {
    const https = { "x-forwarded-proto": "https" };
    const login = await gateway.post("/api/login", { token: tokens[0].token }, https);
    const cookie = login.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(
      /^__Host-holdfast=[^;]+; Path=\/; HttpOnly; Secure; SameSite=Strict; Max-Age=\d+$/,
    );
    const value = cookie.split(";")[0] ?? "";
    expect((await gateway.get("/api/whoami", { ...https, cookie: value })).status).toBe(200);
    const plain = value.replace("__Host-", "");
    expect((await gateway.get("/api/whoami", { ...https, cookie: plain })).status, "by its full name").toBe(
      401,
    );
    await using byAddress = await startGateway(nats.url, {
      tokens: [...tokens],
      publicUrl: "https://flows.example",
    });
    const there = await byAddress.post("/api/login", { token: tokens[0].token });
    expect(there.headers.get("set-cookie")).toContain("__Host-holdfast=");
    const untrusted = await second.post("/api/login", { token: tokens[0].token }, https);
    expect(untrusted.headers.get("set-cookie"), "no proxy of ours").not.toContain("Secure");
  });

  it("limits each caller, not the proxy, and believes nobody else", async () => {
    await using limited = await startGateway(nats.url, {
      tokens: [...tokens],
      trustedProxies: ["127.0.0.1"],
      requestsPerSecond: 1,
    });
    const ask = (from: string) =>
      limited.get("/api/whoami", { ...as("vera"), "x-forwarded-for": `1.2.3.4, ${from}` });
    const statuses = await Promise.all(Array.from({ length: 60 }, () => ask("198.51.100.1")));
    expect(statuses.map(({ status }) => status)).toContain(429);
    expect((await ask("198.51.100.2")).status, "another caller").toBe(200);
    await gateway.post(
      "/api/instances/i1/signal/x",
      {},
      { ...as("otto"), "x-forwarded-for": "198.51.100.3" },
    );
    expect((await audit()).find(({ who }) => who === "otto")).toMatchObject({ from: "198.51.100.3" });
  });
});
