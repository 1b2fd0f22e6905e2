/**
 * Writes the files of a secured installation: the server's configuration, a folder per role, an override for
 * compose.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { newestGeneration } from "../../../schemas/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import {
  type AccountsOptions,
  accountsConfig,
  accountToken,
  credentials,
  inboxPrefix,
  noLimits,
  operatorToken,
} from "../../../shared/security/index.ts";
import { folderOf, Secured, type Tenant, type User } from "./security-file.ts";

const stateFile = "security.json";
const capabilityKeysFile = "capability-keys";

export function readSecured(folder: string): Secured | undefined {
  let text: string;
  try {
    text = readFileSync(join(folder, stateFile), "utf8");
  } catch {
    return undefined; // This folder holds no secured installation.
  }
  const parsed = Secured.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new Fault("config", {
    code: "security_unreadable",
    message: `${join(folder, stateFile)} is not what \`holdfast security init\` writes`,
    hint: "Restore it from a backup, or make a new one in another folder.",
  });
}

export function requireSecured(folder: string): Secured {
  const secured = readSecured(folder);
  if (secured) return secured;
  throw new Fault("config", {
    code: "security_missing",
    message: `there are no keys in ${folder}`,
    hint: "Make them with `holdfast security init`, or name their folder with --out.",
  });
}

export function writeSecured(folder: string, secured: Secured, now: number): string[] {
  const files: Record<string, string> = {
    [stateFile]: `${JSON.stringify(secured, null, 2)}\n`,
    "nats/accounts.conf": secured.mode === "jwt" ? operatorConfig(secured, now) : nkeyConfig(secured),
    "nats/nats.conf": serverConfig(secured),
    "nats/login.conf": composeLogin(secured),
    "compose.override.yaml": composeOverride(folder, secured),
  };
  for (const tenant of secured.tenants) {
    for (const user of tenant.users) {
      const place = join(tenant.name, folderOf(user));
      files[join(place, "env")] = environment(folder, secured, tenant, user);
      if (user.role === "orchestrator")
        files[join(place, capabilityKeysFile)] = tenant.capabilityKeys.map((key) => `${key}\n`).join("");
      const [key] = user.keys;
      if (key && secured.mode === "nkey") files[join(place, "user.nk")] = `${key.seed}\n`;
      if (key && secured.mode === "jwt") {
        const name = nameOf(tenant, user);
        files[join(place, "user.creds")] = credentials(tenant.keys.publicKey, roleKeys(user), key, name, now);
      }
    }
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [name, content] of Object.entries(files))
    writeWhole(join(folder, name), content, { secret: !name.startsWith("nats/") });
  return Object.keys(files).sort();
}

/** Writes atomically; readable by the owner alone, but for the server's part, which holds no secret. */
function writeWhole(path: string, content: string, { secret }: { secret: boolean }): void {
  mkdirSync(dirname(path), { recursive: true, mode: secret ? 0o700 : 0o755 });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, content, { mode: secret ? 0o600 : 0o644 });
  renameSync(draft, path);
}

const accountName = ({ name }: Tenant): string => (name === "" ? "HOLDFAST" : name);
const nameOf = (tenant: Tenant, user: User): string => `${accountName(tenant)}-${folderOf(user)}`;
const scopeOf = ({ role, scope }: User) => {
  const { ownHistories, orchestrations, ...work } = scope;
  if (role === "worker") return work;
  // `security init --session-types` is about workers.
  if (role === "client")
    return {
      group: scope.group,
      orchestrations,
      ...(scope.group !== undefined && { sessionTypes: work.sessionTypes }),
    };
  return { ownHistories };
};

const roleKeys = (user: User) => ({ ...user.signing, role: user.role, scope: scopeOf(user) });

export const nkeyConfig = ({ tenants }: Secured, options?: AccountsOptions): string =>
  accountsConfig(
    tenants.map((tenant) => ({
      name: accountName(tenant),
      prefix: tenant.prefix,
      limits: tenant.limits,
      users: tenant.users.map((user) => ({
        name: nameOf(tenant, user),
        role: user.role,
        scope: scopeOf(user),
        nkeys: user.keys.map(({ publicKey }) => publicKey),
      })),
    })),
    options,
  );

function operatorConfig({ operator, system, tenants, createdAt }: Secured, now: number): string {
  const systemClaims = {
    name: "SYS",
    publicKey: system.publicKey,
    limits: noLimits,
    jetStream: false,
    roles: [],
    prefix: "",
    revoked: [],
  };
  const accounts = tenants.map((tenant) => ({
    name: accountName(tenant),
    publicKey: tenant.keys.publicKey,
    limits: tenant.limits,
    jetStream: true,
    roles: tenant.users.map(roleKeys),
    prefix: tenant.prefix,
    revoked: tenant.users.flatMap(({ revoked }) => revoked),
  }));
  // A running server does not accept another token of its operator.
  return [
    `operator: ${operatorToken(operator, system.publicKey, createdAt)}`,
    `system_account: ${system.publicKey}`,
    "resolver: MEMORY",
    "resolver_preload: {",
    ...[systemClaims, ...accounts].map(
      (claims) => `  ${claims.publicKey}: ${accountToken(operator, claims, now)}`,
    ),
    "}",
    "",
  ].join("\n");
}

function serverConfig({ port, storeDir, tls }: Secured): string {
  return [
    `port: ${port}`,
    "# `always`: what is acknowledged survives a power cut. Other servers of a cluster have copies: there it may be left out.",
    `jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: always, limits { default_max_consumers: -1 } }`,
    ...tlsConfig(tls),
    "include ./accounts.conf",
    "",
  ].join("\n");
}

const tlsConfig = (tls: Secured["tls"]): string[] =>
  tls
    ? [
        "tls {",
        `  cert_file: ${JSON.stringify(tls.cert)}`,
        `  key_file: ${JSON.stringify(tls.key)}`,
        ...(tls.ca === undefined ? [] : [`  ca_file: ${JSON.stringify(tls.ca)}`]),
        ...(tls.verify ? ["  verify: true"] : []),
        "}",
      ]
    : [];

/** In the place of services/nats/login.conf: everything else of the servers of compose.yaml stays as it is. */
const composeLogin = ({ tls }: Secured): string =>
  [...tlsConfig(tls), 'include "../../security/accounts.conf"', ""].join("\n");

function environment(folder: string, { mode, path, tls }: Secured, tenant: Tenant, user: User): string {
  const here = path ?? resolve(folder, tenant.name, folderOf(user));
  const settings: Record<string, string> = {
    ...(mode === "nkey" ? { NATS_NKEY: join(here, "user.nk") } : { NATS_CREDS: join(here, "user.creds") }),
    NATS_INBOX_PREFIX: inboxPrefix(user.role, user.scope),
    ...(tls?.ca === undefined ? {} : { NATS_TLS_CA: tls.ca }),
    ...(tls?.client && { NATS_TLS_CERT: tls.client.cert, NATS_TLS_KEY: tls.client.key }),
    ...(tenant.prefix === "" ? {} : { HOLDFAST_PREFIX: tenant.prefix }),
    ...(user.role === "provisioner" ? {} : { HOLDFAST_PROVISION: "never" }),
    ...(user.role === "orchestrator"
      ? { HOLDFAST_ORCHESTRATOR_CAPABILITY_KEYS: join(here, capabilityKeysFile) }
      : {}),
    HOLDFAST_OLDEST_GENERATION: String(newestGeneration),
    ...(user.scope.ownHistories ? {} : { HISTORY_LAYOUT: "shared" }),
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

/** Covers the first tenant only: an installation by compose has one. */
function composeOverride(folder: string, { mode, tenants }: Secured): string {
  const [tenant] = tenants;
  const place = resolve(folder, tenant?.name ?? "");
  const service = (name: string, role: string) =>
    [
      `  ${name}:`,
      `    env_file: [${JSON.stringify(join(place, role, "env"))}]`,
      `    volumes: [${JSON.stringify(`${join(place, role)}:/security:ro`)}]`,
      ...(mode === "jwt" ? ['    environment: { NATS_NKEY: "" }'] : []),
    ].join("\n");
  const nats = resolve(folder, "nats");
  const mounts = [`${nats}:/security:ro`, `${nats}/login.conf:/etc/nats/login.conf:ro`];
  return [
    "# docker compose -f compose.yaml -f compose.override.yaml up: with these keys instead of those compose makes itself.",
    "# Made with --path /security. Certificates of --tls-… have to be mounted where their paths say.",
    "services:",
    "  security: { command: --version } # The keys are made already.",
    ...["nats", "nats-2", "nats-3"].map((name) => `  ${name}:\n    volumes: ${JSON.stringify(mounts)}`),
    service("provision", "provisioner"),
    ...["orchestrator", "worker", "watcher", "gateway"].map((role) => service(role, role)),
    service("worker-gpu", "worker"),
    "",
  ].join("\n");
}
