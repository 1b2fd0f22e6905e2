/**
 * `dev --roles`: each service has the NATS user and the permissions of its role, as in production. Every other client on
 * this machine logs in as nobody in particular, and may do everything.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { connectBus, ensureTopology, subjects } from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { type RoleName, roleNames } from "../../../shared/security/index.ts";
import { type Environment, readConfig } from "../../config.ts";
import { connectionSettings, topologyOf } from "../../run-service.ts";
import { keepKeys } from "../security/index.ts";

export interface DevRoles {
  /** Lines of the server's configuration. */
  serverConfig: string;
  /** What a process of that service is started with. */
  envOf(service: string): Environment;
  /** Makes the streams: no other process may. */
  provision(natsUrl: string): Promise<void>;
}

export async function devRoles(folder: string, env: Environment): Promise<DevRoles> {
  const { prefix } = readConfig(env, "cli").config;
  const envOf = (service: string): Environment => {
    const role: RoleName | undefined = roleNames.find((one) => one === service);
    return role === undefined ? {} : parseEnv(readFileSync(join(folder, role, "env"), "utf8"));
  };
  return {
    serverConfig: await keepKeys(folder, prefix),
    envOf,
    async provision(natsUrl) {
      const { config } = readConfig({ ...env, ...envOf("provisioner"), NATS_URL: natsUrl }, "cli");
      const names = subjects(config.prefix);
      const connection = connectionSettings(config, names, "holdfast-provision");
      const bus = await connectBus({ ...connection, announce: silent });
      try {
        await ensureTopology(bus, names, topologyOf(config));
      } finally {
        await bus.close();
      }
    },
  };
}
