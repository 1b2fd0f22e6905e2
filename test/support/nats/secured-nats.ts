/** A real nats-server with a user for each role, as `holdfast security init` sets one up. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newestGeneration } from "../../../schemas/index.ts";
import { type BusOptions, createKeys, type KeyPair } from "../../../shared/bus/index.ts";
import { type Capabilities, capabilityKey, KeyedCapabilities } from "../../../shared/capabilities/index.ts";
import {
  type AccountSpec,
  accountsConfig,
  inboxPrefix,
  noLimits,
  type RoleName,
  roleNames,
  type Scope,
} from "../../../shared/security/index.ts";
import { startNats, type TestNats } from "./nats-server.ts";
import { refusalsIn, traceFromNow, tracing } from "./refusals.ts";

export interface SecuredNats {
  nats: TestNats;
  /** Its address, where it is not that of a plain connection. */
  url?: string;
  /** What a process of this role is started with. */
  env(role: RoleName): Record<string, string>;
  connection(role: RoleName): Omit<BusOptions, "announce">;
  /** Makes capabilities as its orchestrators do, for what a test says in a worker's place. */
  capabilities: Capabilities;
  /** With all rights, for the test itself. */
  tester: Omit<BusOptions, "announce">;
  /** What was refused so far: `<role>: <what>`, each once. */
  refused(): string[];
}

const started = new Map<string, SecuredNats>();

/** A server with roles where tests run with them (`HOLDFAST_TEST_ROLES`), an open one else. */
export async function startServer(): Promise<TestNats> {
  if (process.env.HOLDFAST_TEST_ROLES !== "on") return startNats();
  const secured = await startSecuredNats({ testerIsAnybody: true });
  started.set(secured.nats.url, secured);
  return secured.nats;
}

/** The roles of a server that `startServer` started; undefined for an open one. */
export const rolesOf = (url: string): SecuredNats | undefined => started.get(url);

export async function startSecuredNats(
  options: {
    prefix?: string;
    scopes?: Partial<Record<RoleName, Scope>>;
    /** A connection without a key has all rights: for tests that read and change data directly. */
    testerIsAnybody?: boolean;
  } = {},
): Promise<SecuredNats> {
  const { prefix = "", scopes = {} } = options;
  const keys = new Map<RoleName, KeyPair>(roleNames.map((role) => [role, createKeys("user")]));
  const folder = mkdtempSync(join(tmpdir(), "holdfast-keys-"));
  const keyOf = (role: RoleName): KeyPair => keys.get(role) ?? createKeys("user");
  for (const [role, { seed }] of keys) writeFileSync(join(folder, `${role}.nk`), seed, { mode: 0o600 });
  const capabilityKeys = join(folder, "capability-keys");
  const capabilityText = randomBytes(32).toString("base64url");
  writeFileSync(capabilityKeys, capabilityText, { mode: 0o600 });
  const secretKey = capabilityKey(capabilityText);
  const account: AccountSpec = {
    name: "HOLDFAST",
    prefix,
    limits: noLimits,
    users: roleNames.map((role) => ({
      name: role,
      role,
      nkeys: [keyOf(role).publicKey],
      ...(scopes[role] ? { scope: scopes[role] } : {}),
    })),
  };
  // What a test looks and meddles with.
  const tester = createKeys("user");
  const config = accountsConfig([account], { everybody: options.testerIsAnybody ? "tester" : undefined });
  const withTester = config.replace("users: [", `users: [\n{ nkey: ${tester.publicKey} }`);
  const nats = await startNats({ extraConfig: (folder) => [tracing(folder), withTester].join("\n") });
  traceFromNow(nats.dataDir);
  const roleOf = new Map([...keys].map(([role, { publicKey }]) => [`nkey:${publicKey}`, role]));
  return {
    nats,
    env: (role) => ({
      NATS_NKEY: join(folder, `${role}.nk`),
      NATS_INBOX_PREFIX: inboxPrefix(role, scopes[role]),
      HOLDFAST_PROVISION: "never",
      HISTORY_LAYOUT: "shared",
      HOLDFAST_OLDEST_GENERATION: String(newestGeneration),
      ...(role === "orchestrator" && { HOLDFAST_ORCHESTRATOR_CAPABILITY_KEYS: capabilityKeys }),
    }),
    connection: (role) => ({
      url: nats.url,
      nkeySeed: keyOf(role).seed,
      inboxPrefix: inboxPrefix(role, scopes[role]),
      provisioned: true,
    }),
    capabilities: new KeyedCapabilities({
      keys: () => [secretKey],
      mayWrite: () => true,
      acceptMissing: false,
    }),
    tester: { url: nats.url, nkeySeed: tester.seed },
    refused: () => [
      ...new Set(
        refusalsIn(nats.dataDir).map(({ user, what, subject }) => `${roleOf.get(user)}: ${what} ${subject}`),
      ),
    ],
  };
}
