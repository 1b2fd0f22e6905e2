/**
 * One gateway process for several tenants (TENANT-1): each tenant has its own NATS user, tokens, log-in provider, audit,
 * rates and metrics behind a host name of its own. They share the port and nothing else.
 */
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { Fault } from "../../shared/errors/index.ts";
import type { Environment } from "../config.ts";

export interface Tenant {
  host: string;
  /** The environment of a gateway for this tenant alone. */
  env: Environment;
}

/**
 * These settings identify callers and must come from the tenant's own file: a token shared by all would
 * open each tenant.
 */
const ofOneTenant =
  /^(GATEWAY_TOKENS_FILE|GATEWAY_TOKEN_FILE|GATEWAY_PUBLIC_URL|GATEWAY_OIDC_.+|NATS_NKEY|NATS_CREDS|HOLDFAST_PREFIX)$/;

/** The tenants of `GATEWAY_TENANTS`; none where it is not set. */
export function tenantsOf(env: Environment): Tenant[] {
  const { GATEWAY_TENANTS: listed, METRICS_PORT, ...shared } = env;
  if (!listed) return [];
  const refused = Object.keys(shared).filter((name) => shared[name] && ofOneTenant.test(name));
  if (shared.GATEWAY_TOKENS && shared.GATEWAY_TOKENS !== "generate") refused.push("GATEWAY_TOKENS");
  if (refused.length > 0)
    throw new Fault("config", {
      code: "invalid_config",
      message: `GATEWAY_TENANTS and ${refused.join(", ")} are set together: each tenant has its own log-in`,
      hint: "Move the setting into the file of the tenant it is for.",
    });
  const tenants = listed.split(",").map((entry, index) => {
    const [, host = "", path = ""] = /^\s*([A-Za-z0-9.-]+)=(.+?)\s*$/.exec(entry) ?? [];
    if (path === "") throw notATenant(`${entry.trim()} is not <host name>=<file>`);
    const own = { GATEWAY_ALLOWED_HOSTS: host, ...readEnv(path) };
    // A process has one port for its own metrics; those of each tenant are at its own /metrics.
    return { host, env: { ...shared, ...own, ...(index === 0 && METRICS_PORT ? { METRICS_PORT } : {}) } };
  });
  const hosts = tenants.map(({ host }) => host.toLowerCase());
  if (new Set(hosts).size < hosts.length) throw notATenant("a host name is listed twice");
  return tenants;
}

function readEnv(path: string): Environment {
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (cause) {
    throw notATenant(`${path} cannot be read`, cause);
  }
}

const notATenant = (message: string, cause?: unknown): Fault =>
  new Fault("config", {
    code: "invalid_config",
    message: `GATEWAY_TENANTS: ${message}`,
    hint: "Write a.example=/security/a/gateway/env,b.example=/security/b/gateway/env: files that `holdfast security init --tenant a --tenant b` writes.",
    ...(cause === undefined ? {} : { cause }),
  });
