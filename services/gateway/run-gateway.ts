/** Starts the gateway: opens its port first, then connects to NATS (GATEWAY-5). */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { HistoryStore } from "../../shared/history/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import type { Environment } from "../config.ts";
import { type EarlyDeps, runService, type ServiceDeps } from "../run-service.ts";
import { packageDir, packageVersion } from "../version.ts";
import { type GatewayConfig, gatewayConfig, gatewaySettings, tokenFileOf } from "./config.ts";
import { Gateway } from "./gateway.ts";
import { PortListener } from "./http/port-listener.ts";
import { waitingApp } from "./http/waiting-app.ts";
import { writeTokenFile } from "./security/index.ts";

const dashboardDir = () => join(packageDir(), "dist", "dashboard");

export async function runGateway(env: Environment): Promise<void> {
  let opened: Opened | undefined;
  await runService(
    env,
    "gateway",
    async (deps) => {
      opened ??= await openDoor(deps);
      return gatewayOf(deps, opened);
    },
    {
      settings: gatewaySettings,
      beforeBus: async (deps) => {
        opened = await openDoor(deps);
        return opened.door;
      },
    },
  );
}

interface Opened {
  door: PortListener;
  config: GatewayConfig;
}

/** Opens the port: requests are answered from here on, with or without NATS (GATEWAY-5). */
async function openDoor(deps: EarlyDeps<typeof gatewaySettings>): Promise<Opened> {
  const { runtime, settings, logger } = deps;
  const config = gatewayConfig(settings, () => randomBytes(24).toString("base64url"));
  const door = new PortListener({ host: config.host, port: config.port, clock: runtime.clock });
  const { allowedHosts } = config;
  door.serve(waitingApp({ runtime, version: packageVersion(), allowedHosts, dashboardDir: dashboardDir() }));
  await door.start();
  const url = config.publicUrl ?? door.url;
  if (config.generatedToken === undefined) {
    logger.info({ url }, "dashboard");
    return { door, config };
  }
  // A browser never sends the fragment: the token appears in no request log.
  const link = `${url}/#token=${config.generatedToken}`;
  const linkFile = tokenFileOf(config, new URL(door.url).port);
  writeTokenFile(linkFile, link);
  logger.info({ url: config.logToken ? link : url, linkFile }, "dashboard");
  return { door, config };
}

function gatewayOf(deps: ServiceDeps<typeof gatewaySettings>, { door, config: own }: Opened): Gateway {
  const { bus, names, runtime, config, telemetry } = deps;
  return new Gateway({
    door,
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
    fleet: deps.fleet,
    registry: telemetry.registry,
    dashboardDir: dashboardDir(),
  });
}
