/**
 * One NATS user per role, and capabilities, to measure what they cost: `HOLDFAST_TEST_ROLES=on npm run bench`.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectBus, createKeys, defaultTopology, ensureTopology, subjects } from "../shared/bus/index.ts";
import { silent } from "../shared/runtime/index.ts";
import { accountsConfig, inboxPrefix, noLimits, roleNames } from "../shared/security/index.ts";

/** What of it is switched on: a NATS user for each role, capabilities, or both. */
export type Safety = "off" | "roles" | "capabilities" | "everything";

interface Safeguards {
  /** Of the server. */
  config: string;
  /** Of a service. */
  envOf: (role: string) => Record<string, string>;
}

export function safeguards(folder: string, safety: Safety): Safeguards {
  if (safety === "off") return { config: "", envOf: () => ({}) };
  const [withRoles, withCapabilities] = [safety !== "capabilities", safety !== "roles"];
  const keys = roleNames.map((role) => ({ role, ...createKeys("user") }));
  const keysFile = join(folder, "capability-keys");
  writeFileSync(keysFile, randomBytes(32).toString("base64url"), { mode: 0o600 });
  const users = keys.map(({ role, seed, publicKey }) => {
    writeFileSync(join(folder, `${role}.nk`), seed, { mode: 0o600 });
    return { name: role, role, scope: { ownHistories: true }, nkeys: [publicKey] };
  });
  // The workloads themselves connect as a user with all rights.
  const config = accountsConfig([{ name: "HOLDFAST", prefix: "", limits: noLimits, users }], {
    everybody: "bench",
  });
  return {
    config: withRoles ? config : "",
    envOf: (name) => {
      const role = roleNames.find((one) => one === name);
      if (role === undefined) return {};
      const login = { NATS_NKEY: join(folder, `${role}.nk`), NATS_INBOX_PREFIX: inboxPrefix(role) };
      const capabilities = role === "orchestrator" && { HOLDFAST_ORCHESTRATOR_CAPABILITY_KEYS: keysFile };
      return {
        ...(withRoles && login),
        ...(withCapabilities && capabilities),
        HOLDFAST_PROVISION: "never",
        HOLDFAST_OLDEST_GENERATION: "2",
      };
    },
  };
}

export async function provision(url: string): Promise<void> {
  const bus = await connectBus({ url, announce: silent });
  await ensureTopology(bus, subjects(), defaultTopology);
  await bus.close();
}
