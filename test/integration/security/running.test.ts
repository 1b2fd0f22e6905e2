/**
 * A whole installation as real processes, as `holdfast security init` sets it up: every process with its own user, over
 * mutual TLS. Its keys change while it works, and no secret of it is to be seen anywhere.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { readConfig } from "../../../services/config.ts";
import { connectionSettings } from "../../../services/run-service.ts";
import { subjects } from "../../../shared/bus/index.ts";
import { noCapabilities } from "../../../shared/capabilities/index.ts";
import type { RoleName } from "../../../shared/security/index.ts";
import { makeCertificates } from "../../support/nats/certificates.ts";
import { startNats } from "../../support/nats/nats-server.ts";
import { refusalsIn, traceFromNow, tracing } from "../../support/nats/refusals.ts";
import type { SecuredNats } from "../../support/nats/secured-nats.ts";
import { Stack, until } from "../../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../apps/held.ts", import.meta.url));
const bin = fileURLToPath(new URL("../../../bin/holdfast.js", import.meta.url));
const run = promisify(execFile);
const holdfast = (args: string[], env: Record<string, string> = {}) =>
  run(process.execPath, [bin, ...args], { env: { PATH: process.env.PATH ?? "", HOME: tmpdir(), ...env } });

it.each(["nkey", "jwt"])(
  "works over mutual TLS while its keys change, mode %s, and shows no secret",
  async (mode) => {
    const file = makeCertificates("server", "client");
    const folder = mkdtempSync(join(tmpdir(), "holdfast-running-"));
    const out = join(folder, "security");
    const tls = [
      "--tls-cert",
      file("server.pem"),
      "--tls-key",
      file("server.key"),
      "--tls-ca",
      file("ca.pem"),
    ];
    const mine = [
      "--tls-verify",
      "--tls-client-cert",
      file("client.pem"),
      "--tls-client-key",
      file("client.key"),
    ];
    const said = [await holdfast(["security", "init", "--out", out, "--mode", mode, ...tls, ...mine])];
    const dataDir = mkdtempSync(join(tmpdir(), "holdfast-nats-"));
    const server = readFileSync(join(out, "nats/nats.conf"), "utf8").match(/tls \{[^}]*\}/)?.[0] ?? "";
    const include = `include ${relative(dataDir, join(out, "nats/accounts.conf"))}`;
    const nats = await startNats({ dataDir, extraConfig: `${tracing(dataDir)}\n${server}\n${include}` });
    traceFromNow(dataDir);
    const url = nats.url.replace("nats://", "tls://");
    const envOf = (role: RoleName): Record<string, string> =>
      Object.fromEntries(
        readFileSync(join(out, role, "env"), "utf8")
          .trim()
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
      );
    const connection = (role: RoleName) =>
      connectionSettings(readConfig({ ...envOf(role), NATS_URL: url }, "cli").config, subjects(), role);
    const secured: SecuredNats = {
      ...{ nats, url, env: envOf, connection, tester: connection("gateway"), capabilities: noCapabilities },
      refused: () => refusalsIn(dataDir).map(({ user, what, subject }) => `${user}: ${what} ${subject}`),
    };
    await using stack = await Stack.start({ app, secured, servers: [nats] });
    const gateway = await stack.run("gateway", {
      GATEWAY_PORT: "0",
      GATEWAY_TOKENS: "generate",
      HOME: folder,
    });

    // One instance holds a session all the while; others come and go.
    await stack.client.start("counted", { n: 60, ms: 50 }, { id: "held" });
    let [over, finished] = [false, 0];
    const load = (async () => {
      for (let i = 0; !over; i++) {
        const handle = await stack.client.start("steps", { n: 2 }, { id: `load-${i}` });
        await stack.client.result(handle.instanceId, { timeout: "30s" });
        finished++;
      }
    })();
    const seeds = new Set<string>();
    const rotate = async (...more: string[]) => {
      for (const [seed] of readFileSync(join(out, "security.json"), "utf8").matchAll(/S[UAO][A-Z2-7]{50,}/g))
        seeds.add(seed);
      said.push(await holdfast(["security", "rotate", "--out", out, ...more]));
      process.kill(nats.pid, "SIGHUP");
      const before = finished;
      await until("work goes on after the change", () => finished > before + 2);
    };
    await rotate();
    await rotate("--finish");
    const listed = await holdfast(["get", "held", "--json"], { ...envOf("gateway"), NATS_URL: url });
    expect(listed.stdout).toContain("held");
    over = true;
    await load;
    expect(await stack.client.result("held", { timeout: "60s" }), "the session was never lost").toBe(60);

    // Nothing of it in arguments, environments, logs, output, or what the gateway answers without a token.
    for (const [seed] of readFileSync(join(out, "security.json"), "utf8").matchAll(/S[UAO][A-Z2-7]{50,}/g))
      seeds.add(seed);
    expect(seeds.size).toBeGreaterThan(12);
    const token = readFileSync(linkIn(folder), "utf8").trim().split("#token=")[1] ?? "";
    expect(token.length).toBeGreaterThan(20);
    const secrets = [...seeds, token];
    const seen: Record<string, string> = { output: JSON.stringify([said, listed]) };
    for (const { service, pid, log } of stack.processes.map((one) => ({ ...one, ...shown(one) }))) {
      seen[`arguments of ${service}`] = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      seen[`environment of ${service}`] = readFileSync(`/proc/${pid}/environ`, "utf8");
      seen[`log of ${service}`] = log;
    }
    seen["arguments of nats-server"] = readFileSync(`/proc/${nats.pid}/cmdline`, "utf8");
    const address = /"url":"(http[^"]+)"/.exec(gateway.log())?.[1] ?? "";
    const headers = { authorization: `Bearer ${token}` };
    for (const path of ["/", "/api/whoami", "/api/overview", "/api/services", "/api/workers", "/metrics"])
      seen[path] = await (await fetch(`${address}${path}`, { headers })).text();
    for (const [where, text] of Object.entries(seen)) {
      expect(text.length, where).toBeGreaterThan(0);
      for (const secret of secrets) expect(text.includes(secret), `a secret in: ${where}`).toBe(false);
    }
  },
);

const shown = (one: { service: string; pid: number; log(): string }) => ({
  service: one.service,
  pid: one.pid,
  log: one.log(),
});

function linkIn(home: string): string {
  const folder = join(home, ".holdfast");
  const [name = ""] = readdirSync(folder).filter((file) => file.endsWith(".link"));
  return join(folder, name);
}
