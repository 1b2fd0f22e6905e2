import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { HistoryStore } from "../../shared/history/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import type { Environment } from "../config.ts";
import { runService } from "../run-service.ts";
import { packageDir, packageVersion } from "../version.ts";
import { gatewayConfig, gatewaySettings } from "./config.ts";
import { Gateway } from "./gateway.ts";

export function runGateway(env: Environment): Promise<void> {
  return runService(
    env,
    "gateway",
    ({ bus, names, runtime, config, settings, logger, telemetry }) => {
      const own = gatewayConfig(settings, () => randomBytes(24).toString("base64url"));
      const gateway = new Gateway({
        bus,
        names,
        runtime,
        client: new Client({ bus, names, runtime }),
        history: new HistoryStore({
          bus,
          names,
          runtime,
          layout: config.history.layout,
          maxOwnStreams: config.history.maxOwnStreams,
          shards: config.history.shards,
          replicas: config.replicas,
        }),
        topology: {
          partitions: config.partitions,
          historyShards: config.history.shards,
          replicas: config.replicas,
        },
        config: own,
        version: packageVersion(),
        registry: telemetry.registry,
        dashboardDir: join(packageDir(), "dist", "dashboard"),
      });
      return {
        start: async () => {
          await gateway.start();
          // The fragment never leaves the browser: the token is not in any log of requests.
          const login = own.generatedToken === undefined ? "" : `/#token=${own.generatedToken}`;
          logger.info({ url: `${gateway.url}${login}` }, "dashboard");
        },
        stop: () => gateway.stop(),
      };
    },
    { settings: gatewaySettings },
  );
}
