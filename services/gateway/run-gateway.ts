/** Starts the gateway: opens its port first, then connects to NATS (GATEWAY-5). */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { HistoryStore } from "../../shared/history/index.ts";
import type { Clock } from "../../shared/runtime/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import type { Environment } from "../config.ts";
import { type EarlyDeps, runService, type ServiceDeps } from "../run-service.ts";
import { packageDir, packageVersion } from "../version.ts";
import { type GatewayConfig, gatewayConfig, gatewaySettings, tokenFileOf } from "./config.ts";
import { Gateway } from "./gateway.ts";
import { HostListeners } from "./http/host-listeners.ts";
import { type GatewayListener, PortListener } from "./http/port-listener.ts";
import { waitingApp } from "./http/waiting-app.ts";
import { writeTokenFile } from "./security/index.ts";
import { tenantsOf } from "./tenants.ts";

const dashboardDir = () => join(packageDir(), "dist", "dashboard");

export async function runGateway(env: Environment): Promise<void> {
  const tenants = tenantsOf(env);
  if (tenants.length === 0) return runOn(env, portOf);
  let doors: HostListeners | undefined;
  let listener: PortListener | undefined;
  try {
    await Promise.all(
      tenants.map(({ host, env: own }) =>
        runOn(own, (config, clock) => {
          listener ??= portOf(config, clock);
          doors ??= new HostListeners(listener);
          return doors.of(host);
        }),
      ),
    );
  } finally {
    await listener?.stop();
  }
}

type MakeDoor = (config: GatewayConfig, clock: Clock) => GatewayListener;
const portOf = ({ host, port }: GatewayConfig, clock: Clock) => new PortListener({ host, port, clock });

async function runOn(env: Environment, makeDoor: MakeDoor): Promise<void> {
  let opened: Opened | undefined;
  await runService(
    env,
    "gateway",
    async (deps) => {
      opened ??= await openDoor(deps, makeDoor);
      return gatewayOf(deps, opened);
    },
    {
      settings: gatewaySettings,
      beforeBus: async (deps) => {
        opened = await openDoor(deps, makeDoor);
        return opened.door;
      },
    },
  );
}

interface Opened {
  door: GatewayListener;
  config: GatewayConfig;
}

/** Opens the port: requests are answered from here on, with or without NATS (GATEWAY-5). */
async function openDoor(deps: EarlyDeps<typeof gatewaySettings>, makeDoor: MakeDoor): Promise<Opened> {
  const { runtime, settings, logger } = deps;
  const config = gatewayConfig(settings, () => randomBytes(24).toString("base64url"));
  const door = makeDoor(config, runtime.clock);
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
  const { hostname, port } = new URL(door.url);
  const linkFile = tokenFileOf(config, !(door instanceof PortListener) ? `${hostname}-${port}` : port);
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
