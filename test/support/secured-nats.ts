/** A real nats-server with a user for each role, as `holdfast security init` sets one up. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newestGeneration } from "../../schemas/index.ts";
import { type BusOptions, createKeys, type KeyPair } from "../../shared/bus/index.ts";
import {
  type AccountSpec,
  accountsConfig,
  inboxPrefix,
  noLimits,
  type RoleName,
  roleNames,
  type Scope,
} from "../../shared/security/index.ts";
import { startNats, type TestNats } from "./nats-server.ts";

export interface SecuredNats {
  nats: TestNats;
  /** Its address, where it is not that of a plain connection. */
  url?: string;
  /** What a process of this role is started with. */
  env(role: RoleName): Record<string, string>;
  connection(role: RoleName): Omit<BusOptions, "announce">;
  /** With all rights, for the test itself. */
  tester: Omit<BusOptions, "announce">;
  /** What was refused so far: `<role>: <what>`, each once. */
  refused(): string[];
}

export async function startSecuredNats(
  options: { prefix?: string; scopes?: Partial<Record<RoleName, Scope>>; port?: number } = {},
): Promise<SecuredNats> {
  const { prefix = "", scopes = {} } = options;
  const keys = new Map<RoleName, KeyPair>(roleNames.map((role) => [role, createKeys("user")]));
  const folder = mkdtempSync(join(tmpdir(), "holdfast-keys-"));
  const keyOf = (role: RoleName): KeyPair => keys.get(role) ?? createKeys("user");
  for (const [role, { seed }] of keys) writeFileSync(join(folder, `${role}.nk`), seed, { mode: 0o600 });
  const capabilityKeys = join(folder, "capability-keys");
  writeFileSync(capabilityKeys, randomBytes(32).toString("base64url"), { mode: 0o600 });
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
  const config = accountsConfig([account]).replace("users: [", `users: [ { nkey: ${tester.publicKey} }`);
  const nats = await startNats({ extraConfig: config });
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
    tester: { url: nats.url, nkeySeed: tester.seed },
    refused: () => {
      const log = readFileSync(join(nats.dataDir, "nats-server.log"), "utf8");
      const roleOf = new Map([...keys].map(([role, { publicKey }]) => [publicKey, role]));
      const lines = [...log.matchAll(/nkey:(\w+)" - (Publish|Subscription) Violation - Subject "([^"]+)"/g)];
      // The right to answer is gone with the server that passed the question on.
      const asked = lines.filter(([, , , subject = ""]) => !subject.startsWith("_INBOX_"));
      return [
        ...new Set(asked.map(([, key = "", what, subject]) => `${roleOf.get(key)}: ${what} ${subject}`)),
      ];
    },
  };
}
