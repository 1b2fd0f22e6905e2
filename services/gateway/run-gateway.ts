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
  let hostListeners: HostListeners | undefined;
  let port: PortListener | undefined;
  try {
    await Promise.all(
      tenants.map(({ host, env: own }) =>
        runOn(own, (config, clock) => {
          port ??= portOf(config, clock);
          hostListeners ??= new HostListeners(port);
          return hostListeners.of(host);
        }),
      ),
    );
  } finally {
    await port?.stop();
  }
}

type MakeListener = (config: GatewayConfig, clock: Clock) => GatewayListener;
const portOf = ({ host, port }: GatewayConfig, clock: Clock) => new PortListener({ host, port, clock });

async function runOn(env: Environment, makeListener: MakeListener): Promise<void> {
  let opened: Opened | undefined;
  await runService(
    env,
    "gateway",
    async (deps) => {
      opened ??= await openListener(deps, makeListener);
      return gatewayOf(deps, opened);
    },
    {
      settings: gatewaySettings,
      beforeBus: async (deps) => {
        opened = await openListener(deps, makeListener);
        return opened.listener;
      },
    },
  );
}

interface Opened {
  listener: GatewayListener;
  config: GatewayConfig;
}

/** Opens the port: requests are answered from here on, with or without NATS (GATEWAY-5). */
async function openListener(
  deps: EarlyDeps<typeof gatewaySettings>,
  makeListener: MakeListener,
): Promise<Opened> {
  const { runtime, settings, logger } = deps;
  const config = gatewayConfig(settings, () => randomBytes(24).toString("base64url"));
  const listener = makeListener(config, runtime.clock);
  const { allowedHosts } = config;
  listener.serve(
    waitingApp({ runtime, version: packageVersion(), allowedHosts, dashboardDir: dashboardDir() }),
  );
  await listener.start();
  const url = config.publicUrl ?? listener.url;
  if (config.generatedToken === undefined) {
    logger.info({ url }, "dashboard");
    return { listener, config };
  }
  // A browser never sends the fragment: the token appears in no request log.
  const link = `${url}/#token=${config.generatedToken}`;
  const { hostname, port } = new URL(listener.url);
  const linkFile = tokenFileOf(config, !(listener instanceof PortListener) ? `${hostname}-${port}` : port);
  writeTokenFile(linkFile, link);
  logger.info({ url: config.logToken ? link : url, linkFile }, "dashboard");
  return { listener, config };
}

function gatewayOf(deps: ServiceDeps<typeof gatewaySettings>, { listener, config: own }: Opened): Gateway {
  const { bus, names, runtime, config, telemetry } = deps;
  return new Gateway({
    listener,
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
