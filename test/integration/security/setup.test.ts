/** What `holdfast security init` writes, on a real server: users of each role, keys changed without downtime, TLS. */
import { cpSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { credsAuthenticator, nkeyAuthenticator } from "@nats-io/nats-core";
import { expect, it } from "vitest";
import { program } from "../../../services/cli/program.ts";
import { readConfig } from "../../../services/config.ts";
import { connectionSettings } from "../../../services/run-service.ts";
import {
  type Bus,
  checkTopology,
  connectBus,
  defaultTopology,
  ensureTopology,
  subjects,
} from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { makeCertificates } from "../../support/nats/certificates.ts";
import { startNats, type TestNats } from "../../support/nats/nats-server.ts";
import { rawConnection } from "../../support/nats/raw-client.ts";

const names = subjects();
const options = { ...defaultTopology, historyShards: 1 };
const utf8 = new TextEncoder();

async function holdfast(...args: string[]): Promise<string> {
  let said = "";
  const stream = { write: (text: string) => (said += text), isTTY: false };
  const cli = { env: {}, exitCode: 0 as const, stdout: stream, stderr: stream };
  await program(cli).parseAsync(args, { from: "user" });
  return said;
}

const folder = (): string => join(mkdtempSync(join(tmpdir(), "holdfast-security-")), "security");
/** The server reads what it includes from beside its own configuration. */
function serve(out: string, more = ""): Promise<TestNats> {
  const dataDir = mkdtempSync(join(tmpdir(), "holdfast-nats-"));
  const accounts = relative(dataDir, join(out, "nats/accounts.conf"));
  return startNats({
    dataDir,
    extraConfig: `${more}
include ${accounts}`,
  });
}

/** As a process of the role connects: by its `env` file and nothing else. */
function connectAs(role: string, out: string, url: string, more: Record<string, string> = {}): Promise<Bus> {
  const lines = readFileSync(join(out, role, "env"), "utf8")
    .trim()
    .split("\n");
  const env = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)));
  const { config } = readConfig({ ...env, NATS_URL: url, ...more }, "cli");
  return connectBus({ ...connectionSettings(config, names, role), announce: silent });
}

it.each(["nkey", "jwt"])(
  "sets up users of each role, mode %s, and changes their keys without downtime",
  async (mode) => {
    const out = folder();
    await holdfast("security", "init", "--out", out, "--mode", mode);
    expect(statSync(join(out, "security.json")).mode & 0o077, "readable by its owner alone").toBe(0);
    await expect(holdfast("security", "init", "--out", out)).rejects.toMatchObject({
      code: "security_exists",
    });
    await using nats = await serve(out);
    const provisioner = await connectAs("provisioner", out, nats.url);
    await ensureTopology(provisioner, names, options);
    const worker = await connectAs("worker", out, nats.url);
    const gateway = await connectAs("gateway", out, nats.url);
    await checkTopology(worker, names, options);
    await expect(worker.publish(names.verb("i1", "terminate"), utf8.encode("{}"))).rejects.toMatchObject({
      code: "permission_denied",
    });
    await expect(gateway.publish(names.verb("i1", "terminate"), utf8.encode("{}"))).resolves.toMatchObject({
      kind: "stored",
    });
    await expect(worker.deleteStream(names.inboxStream)).rejects.toMatchObject({ code: "permission_denied" });

    // Publishes all the while: nothing is refused, and nothing lost, while keys change under it.
    let [done, stored] = [false, 0];
    const busy = (async () => {
      while (!done) {
        const outcome = await worker.publish(names.verb("i2", "activity"), utf8.encode("{}"));
        if (outcome.kind === "stored") stored++;
      }
    })();
    const oldKey = readFileSync(join(out, "worker", mode === "nkey" ? "user.nk" : "user.creds"), "utf8");
    await holdfast("security", "rotate", "--out", out);
    process.kill(nats.pid, "SIGHUP");
    const fresh = await connected(() => connectAs("worker", out, nats.url));
    await holdfast("security", "rotate", "--out", out, "--finish");
    const away = new Promise<void>((resolve) => {
      worker.onState(({ kind }) => kind === "reconnected" && resolve());
    });
    process.kill(nats.pid, "SIGHUP");
    await away; // with the new key, which it reads by itself
    const before = stored;
    await expect.poll(() => stored).toBeGreaterThan(before);
    done = true;
    await busy;
    expect(readFileSync(join(out, "worker", mode === "nkey" ? "user.nk" : "user.creds"), "utf8")).not.toBe(
      oldKey,
    );
    for (const bus of [provisioner, worker, gateway, fresh]) await bus.close();
  },
);

/** The server takes a moment to reload and does not answer meanwhile. */
async function connected(connect: () => Promise<Bus>): Promise<Bus> {
  for (;;) {
    try {
      return await connect();
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code !== "nats_unauthorized" && code !== "nats_unreachable") throw error;
    }
  }
}

it.each(["nkey", "jwt"])("keeps the keys and renews the rights with --if-missing, mode %s", async (mode) => {
  const out = folder();
  await holdfast("security", "init", "--out", out, "--mode", mode);
  const accounts = join(out, "nats/accounts.conf");
  const [state, rights] = [readFileSync(join(out, "security.json"), "utf8"), readFileSync(accounts, "utf8")];
  writeFileSync(accounts, "# of an earlier version");
  await holdfast("security", "init", "--if-missing", "--out", out, "--mode", mode);
  expect(JSON.parse(readFileSync(join(out, "security.json"), "utf8"))).toEqual(JSON.parse(state));
  expect(readFileSync(accounts, "utf8")).toHaveLength(rights.length);
  expect(statSync(accounts).mode & 0o777, "a server under another user reads it").toBe(0o644);
  for (const seed of state.match(/S[UAO][A-Z2-7]{56}/g) ?? []) expect(rights).not.toContain(seed);
});

it.each(["nkey", "jwt"])("gives a group of workers a user of its own, mode %s", async (mode) => {
  const out = folder();
  await holdfast("security", "init", "--out", out, "--mode", mode);
  await holdfast("security", "add-workers", "gpu", "--out", out, "--session-types", "model");
  await expect(holdfast("security", "add-workers", "gpu", "--out", out)).rejects.toMatchObject({
    code: "security_exists",
  });
  await using nats = await serve(out);
  const provisioner = await connectAs("provisioner", out, nats.url);
  await ensureTopology(provisioner, names, options);
  const [gpu, cpu] = [await connectAs("worker-gpu", out, nats.url), await connectAs("worker", out, nats.url)];
  const consumer = {
    stream: names.activitiesStream,
    name: names.activityConsumer("q", "n"),
    ackWaitMs: 1000,
  };
  const filter = names.activity("q", "n");
  await expect(gpu.ensureConsumer({ ...consumer, filter })).rejects.toMatchObject({
    code: "permission_denied",
  });
  await cpu.ensureConsumer({ ...consumer, filter });
  const claims = { stream: names.claimsStream, name: names.claimConsumer("model"), ackWaitMs: 1000 };
  await gpu.ensureConsumer({ ...claims, filter: names.claimsOf("model") });
  for (const bus of [provisioner, gpu, cpu]) await bus.close();
});

it.each(["nkey", "jwt"])("gives a set of clients a user of its own, mode %s", async (mode) => {
  const out = folder();
  await holdfast("security", "init", "--out", out, "--mode", mode);
  for (const [group, orchestration] of [
    ["shop", "order"],
    ["desk", "report"],
  ] as const)
    await holdfast("security", "add-client", group, "--out", out, "--orchestrations", orchestration);
  await expect(holdfast("security", "add-client", "shop", "--out", out)).rejects.toMatchObject({
    code: "security_exists",
  });
  await using nats = await serve(out);
  const provisioner = await connectAs("provisioner", out, nats.url);
  await ensureTopology(provisioner, names, options);
  const shop = await connectAs("client-shop", out, nats.url);
  const start = (name: string) => shop.publish(names.start("i1", name), utf8.encode("{}"));
  await expect(start("order")).resolves.toMatchObject({ kind: "stored" });
  await expect(start("report")).rejects.toMatchObject({ code: "permission_denied" });
  await expect(start("other")).rejects.toMatchObject({ code: "permission_denied" });

  // With the key of one set: what others are answered is not to be heard, and keepers are told nothing.
  const prefix = "_INBOX_client_shop";
  const key = join(out, "client-shop", mode === "nkey" ? "user.nk" : "user.creds");
  const secret = readFileSync(key);
  const authenticator =
    mode === "nkey" ? nkeyAuthenticator(secret.subarray(0, 58)) : credsAuthenticator(secret);
  const { nc, refused } = await rawConnection({ servers: nats.url, inboxPrefix: prefix, authenticator });
  const others = ["_INBOX_client.>", "_INBOX_client_desk.>", "_INBOX_client_shop_2.>", ">"];
  for (const subject of [`${prefix}.>`, ...others]) nc.subscribe(subject, { callback: () => undefined });
  const orders = ["flow", "schedule", "pool"].map((signal) => names.signal("i1", signal));
  for (const subject of orders) nc.publish(subject, "{}");
  await nc.flush();
  await expect.poll(() => [...refused].sort()).toEqual([...others, ...orders].sort());
  await nc.close();
  for (const bus of [provisioner, shop]) await bus.close();
});

it.each(["nkey", "jwt"])(
  "writes an override that changes keys of compose.yaml and nothing else, mode %s",
  async (mode) => {
    const out = folder();
    const file = makeCertificates("server", "client");
    const [cert, key, ca] = [file("server.pem"), file("server.key"), file("ca.pem")];
    await holdfast(
      ...["security", "init", "--out", out, "--mode", mode, "--path", "/security"],
      ...["--tls-cert", cert, "--tls-key", key, "--tls-ca", ca],
    );
    const repository = new URL("../../../", import.meta.url);
    const compose = readFileSync(new URL("compose.yaml", repository), "utf8");
    const override = readFileSync(join(out, "compose.override.yaml"), "utf8");
    const services = [...override.matchAll(/^ {2}([\w-]+):/gm)].map(([, name]) => name);
    for (const service of services) expect(compose).toMatch(new RegExp(`^ {2}${service}:$`, "m"));
    expect([...compose.matchAll(/:\/security:ro/g)].length, "each that has keys is given others").toBe(
      services.length - 1, // `security` makes none
    );
    expect([...override.matchAll(/command:/g)], "servers keep their settings").toHaveLength(1);

    // A server as compose starts it: its own files, and over them what the override mounts.
    const root = mkdtempSync(join(tmpdir(), "holdfast-compose-"));
    const place = (target: string) => join(root, target);
    cpSync(new URL("services/nats", repository), place("etc/nats"), { recursive: true });
    const mounts = /^ {2}nats:\n {4}volumes: (\[.*\])$/m.exec(override)?.[1] ?? "[]";
    for (const mount of JSON.parse(mounts) as string[]) {
      const [source = "", target = ""] = mount.split(":");
      cpSync(source, place(target), { recursive: true });
    }
    const dataDir = place("data");
    await using nats = await startNats({ dataDir, extraConfig: "include ../etc/nats/login.conf" });
    const url = nats.url.replace("nats://", "tls://");
    const secret: Record<string, string> =
      mode === "nkey"
        ? { NATS_NKEY: join(out, "worker/user.nk") }
        : { NATS_CREDS: join(out, "worker/user.creds") };
    const worker = await connectAs("worker", out, url, secret);
    await expect(worker.publish(names.verb("i1", "terminate"), utf8.encode("{}"))).rejects.toMatchObject({
      code: "permission_denied",
    });
    await worker.close();
  },
);

it("talks TLS, and shows a certificate where the server asks for one", async () => {
  const file = makeCertificates("server", "client");
  const out = folder();
  await holdfast(
    "security",
    "init",
    "--out",
    out,
    "--tls-cert",
    file("server.pem"),
    "--tls-key",
    file("server.key"),
    "--tls-ca",
    file("ca.pem"),
    "--tls-verify",
  );
  const tls = readFileSync(join(out, "nats/nats.conf"), "utf8").match(/tls \{[^}]*\}/)?.[0] ?? "";
  await using nats = await serve(out, tls);
  const url = nats.url.replace("nats://", "tls://");
  const mine = { NATS_TLS_CERT: file("client.pem"), NATS_TLS_KEY: file("client.key") };
  const bus = await connectAs("provisioner", out, url, mine);
  await ensureTopology(bus, names, options);
  await bus.close();
  await expect(connectAs("provisioner", out, url), "no certificate").rejects.toThrow();
  await expect(
    connectAs("provisioner", out, url, { ...mine, NATS_TLS_CA: file("client.pem") }),
    "not its authority",
  ).rejects.toThrow();
  await expect(
    connectAs("provisioner", out, url, { ...mine, NATS_TLS_CA: file("nowhere.pem") }),
  ).rejects.toMatchObject({
    code: "creds_unreadable",
  });
});

it("says what is wrong with settings that contradict each other", () => {
  const read = (env: Record<string, string>) => () => readConfig({ NATS_URL: "nats://x:1", ...env }, "cli");
  expect(read({ NATS_NKEY: "a", NATS_CREDS: "b" })).toThrow("NATS_CREDS and NATS_NKEY are set together");
  expect(read({ NATS_USER: "a" })).toThrow("belong together");
  expect(read({ NATS_USER: "a", NATS_PASSWORD: "b", NATS_PASSWORD_FILE: "c" })).toThrow(
    "only one of them can be used",
  );
  expect(read({ NATS_TLS_CERT: "a" })).toThrow("NATS_TLS_CERT and NATS_TLS_KEY belong together");
  expect(read({ NATS_INBOX_PREFIX: "mine" })).toThrow("must begin with _INBOX");
});
