/** Log-in by a real OpenID Connect provider: the whole way of a browser, and what must not lead in. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { Oidc, type OidcConfig } from "../../../services/gateway/security/index.ts";
import { json, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { startProvider, type TestProvider } from "../../support/gateway/oidc-provider.ts";
import type { TestNats } from "../../support/nats/nats-server.ts";
import { startServer } from "../../support/nats/secured-nats.ts";

const publicUrl = "https://flows.example";
const client = {
  id: "holdfast",
  secret: "a-secret-of-the-client",
  redirectUri: `${publicUrl}/api/oidc/callback`,
};
/** The proxy before the gateway speaks https. */
const https = { "x-forwarded-proto": "https", host: "localhost" };

let nats: TestNats;
let provider: TestProvider;
let gateway: TestGateway;
let config: OidcConfig;

beforeAll(async () => {
  nats = await startServer();
  provider = await startProvider(client);
  provider.people.set("ada", { preferred_username: "ada@example", groups: ["staff", "platform"] });
  provider.people.set("vera", { preferred_username: "vera@example", groups: ["staff"] });
  provider.people.set("eve", { preferred_username: "eve@example", groups: ["visitors"] });
  config = {
    issuer: provider.issuer,
    clientId: client.id,
    clientSecret: client.secret,
    scopes: ["openid", "profile", "groups"],
    groupsClaim: "groups",
    roles: new Map([
      ["platform", { role: "admin", payloads: false }],
      ["staff", { role: "viewer", payloads: false }],
    ]),
    sessionMs: 3_600_000,
    publicUrl,
  };
  gateway = await startGateway(nats.url, { publicUrl, oidc: config, payloadReaders: "operator" });
});
afterAll(async () => {
  await gateway?.stop();
  await provider?.[Symbol.asyncDispose]();
  await nats?.stop();
});

const ask = (path: string, headers: Record<string, string> = {}, at = gateway) =>
  fetch(`${at.url}${path}`, { redirect: "manual", headers: { ...https, ...headers } });
const cookieOf = (response: Response, name: string) =>
  response.headers
    .getSetCookie()
    .find((line) => line.startsWith(`${name}=`))
    ?.split(";")[0] ?? "";

/** Up to where the provider sends the browser back. */
async function begin(person: string, to = "/", at = gateway) {
  const begun = await ask(`/api/oidc/login?to=${encodeURIComponent(to)}`, {}, at);
  expect(begun.status).toBe(302);
  const cookie = cookieOf(begun, "__Host-holdfast-oidc");
  const address = begun.headers.get("location") ?? "";
  const back = await provider.logIn(address, person);
  expect(back.startsWith(client.redirectUri)).toBe(true);
  return { cookie, address, back: back.slice(publicUrl.length), lines: begun.headers.getSetCookie() };
}

it("lets people in with the role of their groups, and says who they are", async () => {
  const { cookie, address, back, lines } = await begin("ada", "/orchestrations?status=failed");
  expect(lines[0]).toMatch(/; HttpOnly; Secure; SameSite=Lax; /);
  const asked = new URL(address).searchParams;
  expect(asked.get("code_challenge_method")).toBe("S256");
  expect(asked.get("response_type")).toBe("code");
  const finished = await ask(back, { cookie });
  expect(finished.headers.get("location")).toBe("/orchestrations?status=failed");
  const session = cookieOf(finished, "__Host-holdfast");
  expect(finished.headers.getSetCookie().find((line) => line.startsWith("__Host-holdfast="))).toMatch(
    /; Path=\/; HttpOnly; Secure; SameSite=Strict; Max-Age=3600$/,
  );
  expect(await json(await ask("/api/whoami", { cookie: session }))).toMatchObject({
    name: "ada@example",
    role: "admin",
    payloads: true,
  });
  const { entries } = await json(await ask("/api/audit", { cookie: session }));
  expect(entries).toContainEqual(expect.objectContaining({ who: "ada@example", action: "login" }));
  expect((await ask("/api/whoami")).status).toBe(401);
  expect(await json(await ask("/api/login-ways"))).toEqual({ token: false, oidc: true });
});

it("gives each group its own role, and counts a changed mapping at once", async () => {
  const { cookie, back } = await begin("vera");
  const session = cookieOf(await ask(back, { cookie }), "__Host-holdfast");
  expect(await json(await ask("/api/whoami", { cookie: session }))).toMatchObject({
    role: "viewer",
    payloads: false,
  });
  expect((await ask("/api/audit", { cookie: session })).status).toBe(403);
  // Another gateway with the same client, as after a restart with other settings.
  const roles = new Map([["staff", { role: "operator", payloads: true } as const]]);
  await using other = await startGateway(nats.url, { publicUrl, oidc: { ...config, roles } });
  expect(await json(await ask("/api/whoami", { cookie: session }, other))).toMatchObject({
    role: "operator",
  });
  const none = new Map([["others", { role: "admin", payloads: true } as const]]);
  await using strict = await startGateway(nats.url, { publicUrl, oidc: { ...config, roles: none } });
  expect((await ask("/api/whoami", { cookie: session }, strict)).status).toBe(401);
});

it("refuses people without a role, and says so in the audit", async () => {
  const { cookie, back } = await begin("eve");
  const finished = await ask(back, { cookie });
  expect(finished.headers.get("location")).toBe("/?login=oidc_no_role");
  expect(cookieOf(finished, "__Host-holdfast")).toBe("");
});

it("refuses an answer that was not asked for here: another browser, another state, twice", async () => {
  const refused = async (path: string, cookie: string) => {
    const response = await ask(path, { cookie });
    expect(cookieOf(response, "__Host-holdfast")).toBe("");
    return response.headers.get("location");
  };
  const mine = await begin("vera");
  expect(await refused(mine.back, ""), "log-in of somebody else sent to this browser").toBe(
    "/?login=oidc_login_unknown",
  );
  const other = await begin("vera");
  expect(await refused(mine.back, other.cookie), "state").toBe("/?login=oidc_refused");
  const forged = new URL(mine.back, publicUrl);
  forged.searchParams.set("code", "guessed");
  expect(await refused(forged.pathname + forged.search, mine.cookie), "code").toBe("/?login=oidc_refused");
  expect((await ask(other.back, { cookie: other.cookie })).headers.get("location")).toBe("/");
  expect(await refused(other.back, other.cookie), "twice").toBe("/?login=oidc_refused");
});

it("refuses the right code with another state, or none: somebody else's log-in sent to a browser that has begun one", async () => {
  const { cookie, back } = await begin("vera");
  for (const state of ["guessed", undefined]) {
    const forged = new URL(back, publicUrl);
    if (state === undefined) forged.searchParams.delete("state");
    else forged.searchParams.set("state", state);
    const refused = await ask(forged.pathname + forged.search, { cookie });
    expect(refused.headers.get("location"), `state ${state}`).toBe("/?login=oidc_refused");
    expect(cookieOf(refused, "__Host-holdfast")).toBe("");
  }
  // The code was good all the while, and so were cookie and verifier: the state alone was wrong.
  expect((await ask(back, { cookie })).headers.get("location")).toBe("/");
});

it.each([
  ["nonce", "nonce"],
  ["verifier", "code_challenge"],
])("refuses a token that was asked for with another %s", async (_what, parameter) => {
  const begun = await ask("/api/oidc/login");
  const cookie = cookieOf(begun, "__Host-holdfast-oidc");
  const address = new URL(begun.headers.get("location") ?? "");
  address.searchParams.set(parameter, "A".repeat(43));
  const back = (await provider.logIn(address.href, "vera")).slice(publicUrl.length);
  const refused = await ask(back, { cookie });
  expect(refused.headers.get("location")).toBe("/?login=oidc_refused");
  expect(cookieOf(refused, "__Host-holdfast")).toBe("");
});

it("forgets who has begun a log-in after ten minutes, and who is logged in after GATEWAY_OIDC_SESSION", async () => {
  const { cookie, back } = await begin("vera");
  const value = (line: string) => line.slice(line.indexOf("=") + 1);
  const oidc = new Oidc(config);
  await expect(
    oidc.finish(new URL(back, publicUrl), value(cookie), Date.now() + 600_001),
  ).rejects.toMatchObject({ code: "oidc_login_unknown" });
  const session = value(cookieOf(await ask(back, { cookie }), "__Host-holdfast"));
  expect(oidc.unseal(session, Date.now())).toMatchObject({ name: "vera@example" });
  expect(oidc.unseal(session, Date.now() + config.sessionMs)).toBeUndefined();
});

it("limits how often one address may come back with what is none", async () => {
  await using own = await startGateway(nats.url, { publicUrl, oidc: config });
  const led: (string | null)[] = [];
  for (let i = 0; i < 14; i++)
    led.push((await ask(`/api/oidc/callback?code=guess-${i}`, {}, own)).headers.get("location"));
  expect(led[0]).toBe("/?login=oidc_login_unknown");
  expect(led.at(-1)).toBe("/?login=too_many_requests");
});

it("sends nobody to another site after the log-in", async () => {
  for (const to of ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]) {
    const { cookie, back } = await begin("vera", to);
    expect((await ask(back, { cookie })).headers.get("location"), to).toBe("/");
  }
});

it("says that the provider is away, and goes on when it is back", async () => {
  await using lonely = await startGateway(nats.url, {
    publicUrl,
    oidc: { ...config, issuer: "http://127.0.0.1:9" },
  });
  const begun = await ask("/api/oidc/login", {}, lonely);
  expect(begun.headers.get("location")).toBe("/?login=oidc_unreachable");
});
