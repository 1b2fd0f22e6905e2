/**
 * Two tenants over HTTP, with a gateway each and with one gateway for both (TENANT-1): A cannot see, follow,
 * start or stop anything of B's, nor use up its limits.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { program } from "../../../services/cli/program.ts";
import { tenantsOf } from "../../../services/gateway/tenants.ts";
import { connectBus, defaultTopology, ensureTopology, subjects } from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { inboxPrefix } from "../../../shared/security/index.ts";
import { startNats, type TestNats } from "../../support/nats/nats-server.ts";
import { until } from "../../support/processes/stack.ts";

const bin = fileURLToPath(new URL("../../../bin/holdfast.js", import.meta.url));
const app = fileURLToPath(new URL("../../../examples/basics/app.ts", import.meta.url));
const names = subjects();
const tenants = ["a", "b"] as const;
type Name = (typeof tenants)[number];
const tokenOf = (tenant: Name): string => `the-token-of-${tenant}-which-is-long-enough`;
const hostOf = (tenant: Name): string => `${tenant}.flows.example`;

describe.each(["a gateway each", "one gateway for both"])("%s", (kind) => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-tenants-"));
  const out = join(folder, "security");
  const children: ChildProcess[] = [];
  const ports = new Map<Name, number>();
  let nats: TestNats;

  const envOf = (tenant: Name, role: string): Record<string, string> =>
    parseEnv(readFileSync(join(out, tenant, role, "env"), "utf8")) as Record<string, string>;

  /** Resolves with the port it serves, where it has one. */
  async function run(service: string, env: Record<string, string>, ready = 1): Promise<number> {
    const child = fork(bin, [service, ...(service === "gateway" ? [] : ["--app", app])], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: [],
      env: { PATH: process.env.PATH ?? "", HOME: folder, NATS_URL: nats.url, GATEWAY_PORT: "0", ...env },
    });
    children.push(child);
    let [log, told] = ["", 0];
    child.stderr?.on("data", (chunk: Buffer) => {
      log += chunk.toString();
    });
    child.on("message", () => told++);
    await until(`${service} is ready`, () => {
      if (child.exitCode !== null) throw new Error(log);
      return told >= ready;
    });
    return Number(/"url":"http:\/\/[^:]+:(\d+)"/.exec(log)?.[1] ?? 0);
  }

  beforeAll(async () => {
    const stream = { write: () => true, isTTY: false };
    const cli = { env: {}, exitCode: 0 as const, stdout: stream, stderr: stream };
    const init = ["security", "init", "--out", out, "--tenant", "a", "--tenant", "b"];
    await program(cli).parseAsync(init, { from: "user" });
    const dataDir = mkdtempSync(join(tmpdir(), "holdfast-nats-"));
    const include = `include ${relative(dataDir, join(out, "nats/accounts.conf"))}`;
    nats = await startNats({ dataDir, extraConfig: include });
    for (const tenant of tenants) {
      const nkeyFile = join(out, tenant, "provisioner", "user.nk");
      const login = { nkeyFile, inboxPrefix: inboxPrefix("provisioner") };
      const bus = await connectBus({ url: nats.url, ...login, announce: silent });
      await ensureTopology(bus, names, defaultTopology);
      await bus.close();
      // What only this tenant's gateway knows.
      const place = join(out, tenant, "gateway");
      writeFileSync(join(place, "tokens"), `admin/${tenant}:${tokenOf(tenant)}\n`, { mode: 0o600 });
      appendFileSync(
        join(place, "env"),
        `GATEWAY_TOKENS_FILE=${join(place, "tokens")}\nGATEWAY_ALLOWED_HOSTS=${hostOf(tenant)}\nGATEWAY_RATE_LIMIT=20\n`,
      );
    }
    await Promise.all(tenants.map((tenant) => run("orchestrator", envOf(tenant, "orchestrator"))));
    if (kind === "a gateway each") {
      for (const tenant of tenants) ports.set(tenant, await run("gateway", envOf(tenant, "gateway")));
      return;
    }
    const listed = tenants.map((tenant) => `${hostOf(tenant)}=${join(out, tenant, "gateway", "env")}`);
    const port = await run("gateway", { GATEWAY_TENANTS: listed.join(",") }, tenants.length);
    for (const tenant of tenants) ports.set(tenant, port);
  });

  afterAll(async () => {
    const living = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    const gone = living.map((child) => once(child, "exit"));
    for (const child of living) child.kill("SIGTERM");
    await Promise.all(gone);
    await nats?.stop();
  });

  interface Asked {
    token?: Name;
    host?: string;
    body?: unknown;
  }

  async function open(tenant: Name, path: string, asked: Asked = {}): Promise<IncomingMessage> {
    const { token = tenant, host = hostOf(tenant), body } = asked;
    const sent = request({
      host: "127.0.0.1",
      port: ports.get(tenant),
      path,
      method: body === undefined ? "GET" : "POST",
      headers: { host, authorization: `Bearer ${tokenOf(token)}`, "content-type": "application/json" },
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    return answer;
  }

  async function ask(tenant: Name, path: string, asked: Asked = {}) {
    const answer = await open(tenant, path, asked);
    const body = await textOf(answer);
    return { status: answer.statusCode, body };
  }

  it("lets nobody in with the other's token, or by a name that is nobody's", async () => {
    expect((await ask("a", "/api/whoami")).status).toBe(200);
    expect((await ask("b", "/api/whoami")).status).toBe(200);
    expect((await ask("b", "/api/whoami", { token: "a" })).status).toBe(401);
    expect((await ask("a", "/api/whoami", { host: "c.flows.example" })).status).toBe(421);
  });

  it("starts, sees, hears and stops each tenant's own", async () => {
    const heard = await open("b", "/api/events?topics=instances");
    let told = "";
    heard.on("data", (chunk: Buffer) => {
      told += chunk.toString();
    });
    const waiting = { id: "of-a", input: null };
    expect((await ask("a", "/api/orchestrations/wait-for-signal", { body: waiting })).status).toBe(202);
    await until("A sees it run", async () =>
      (await ask("a", "/api/instances/of-a")).body.includes("running"),
    );
    expect((await ask("b", "/api/instances/of-a")).status).toBe(404);
    expect((await ask("b", "/api/instances")).body).not.toContain("of-a");
    expect((await ask("b", "/api/instances/of-a/history")).status).toBe(404);

    // Stopped by B with all rights B has, and by B under A's name.
    await ask("b", "/api/instances/of-a/terminate", { body: {} });
    expect((await ask("a", "/api/instances/of-a/terminate", { token: "b", body: {} })).status).toBe(401);
    const mine = { id: "of-b", input: null };
    expect((await ask("b", "/api/orchestrations/wait-for-signal", { body: mine })).status).toBe(202);
    await until("B sees its own", async () =>
      (await ask("b", "/api/instances/of-b")).body.includes("running"),
    );
    await until("B hears of its own", () => told.includes("of-b"));
    expect(told, "and not of A's, which was before it").not.toContain('"of-a"');
    heard.destroy();
    expect((await ask("a", "/api/instances/of-a")).body, "still there").toContain("running");
    expect((await ask("a", "/api/instances")).body).not.toContain("of-b");
    for (const [tenant, other] of [["a", "b"] as const, ["b", "a"] as const]) {
      const audit = (await ask(tenant, "/api/audit")).body;
      expect(audit).toContain(`of-${tenant}`);
      expect(audit, "nothing of the other's people").not.toContain(`"${other}"`);
    }
  });

  it("uses up its own rate, and not the other's", async () => {
    // Many at a time: one after the other, a busy machine may never ask too often.
    const burst = () => Promise.all(Array.from({ length: 100 }, () => ask("a", "/api/whoami")));
    await until("A is refused", async () => (await burst()).some(({ status }) => status === 429));
    expect((await ask("b", "/api/whoami")).status).toBe(200);
  });

  it("shows each its own metrics", async () => {
    const counted = (text: string) => /^holdfast_instances\S*running\S* (\d+)/m.exec(text)?.[1];
    const metrics = await until("B's rate has room", async () => {
      const answer = await ask("b", "/metrics");
      return answer.status === 200 && answer.body;
    });
    expect(counted(metrics)).toBe("1");
  });
});

it("refuses settings that would let the people of one tenant into the other", () => {
  const listed = { GATEWAY_TENANTS: "a.example=/nowhere/a,b.example=/nowhere/b" };
  expect(() => tenantsOf({ ...listed, GATEWAY_TOKENS: `admin:${tokenOf("a")}` })).toThrow("each tenant");
  expect(() => tenantsOf({ ...listed, GATEWAY_TOKENS_FILE: "x" })).toThrow("each tenant");
  expect(() => tenantsOf({ ...listed, GATEWAY_OIDC_ISSUER: "https://x.example" })).toThrow("each tenant");
  expect(() => tenantsOf(listed)).toThrow("/nowhere/a cannot be read");
  expect(() => tenantsOf({ GATEWAY_TENANTS: "a.example" })).toThrow("is not <host name>=<file>");
  expect(tenantsOf({})).toEqual([]);
});
