/**
 * Runs a service from its environment to its end: connect, create what is missing, start, report ready, wait,
 * stop.
 */

import {
  type Bus,
  type BusOptions,
  checkTopology,
  connectBus,
  ensureTopology,
  installedNames,
  type Subjects,
  subjects,
  type TopologyOptions,
} from "../shared/bus/index.ts";
import { Fault } from "../shared/errors/index.ts";
import { Fleet, fleetHeaders, fleetView } from "../shared/fleet/index.ts";
import { type Runtime, type Service, systemRandom, systemRuntime, token } from "../shared/runtime/index.ts";
import { Telemetry } from "../shared/telemetry/index.ts";
import { type Describe, ServiceBeacon } from "./beacon.ts";
import {
  type EngineConfig,
  type Environment,
  readConfig,
  type SettingsOf,
  type SettingsShape,
} from "./config.ts";
import { optimiseEarly } from "./early-optimisation.ts";
import { createLogger, type Logger, logHappenings } from "./logger.ts";
import { untilAskedToStop } from "./stop-signal.ts";
import { packageVersion } from "./version.ts";
import { waitForNats } from "./wait-for-nats.ts";

export interface ServiceDeps<S extends SettingsShape = Record<never, never>> {
  /** This process's own id, a token made of name and incarnation. */
  id: string;
  bus: Bus;
  /** How the bus was connected, for threads that need a connection of their own. */
  connection: ConnectionSettings;
  names: Subjects;
  runtime: Runtime;
  config: EngineConfig;
  /** The service's own settings, as `options.settings` parsed them. */
  settings: SettingsOf<S>;
  logger: Logger;
  telemetry: Telemetry;
  /** Which generation may be written now, and which process holds it back (E1). */
  fleet: Fleet;
  /** Headers of this process's entry in `services` or `workers`. */
  fleetHeaders: Record<string, string>;
}

export interface RunnableService extends Service {
  /**
   * What the entry in the `services` bucket shows of this service beside the usual fields. Workers have a
   * bucket of their own.
   */
  describe?: Describe;
}

/** The parts that exist before the bus is connected. */
export type EarlyDeps<S extends SettingsShape> = Pick<
  ServiceDeps<S>,
  "runtime" | "config" | "settings" | "logger"
>;

interface RunServiceOptions<S extends SettingsShape> {
  /** Settings this service alone understands: variable name → schema. */
  settings?: S;
  /** True if users' code runs on the main thread: an uncaught exception is then announced and survived. */
  runsForeignCode?: boolean;
  /** Serves before the bus is connected: such a service waits for NATS instead of ending without it. */
  beforeBus?: (deps: EarlyDeps<S>) => Promise<{ stop(): Promise<void> }>;
}

/** Resolves when the service has stopped, after SIGINT, SIGTERM or the end of its parent process. */
export async function runService<S extends SettingsShape = Record<never, never>>(
  env: Environment,
  name: string,
  build: (deps: ServiceDeps<S>) => RunnableService | Promise<RunnableService>,
  options: RunServiceOptions<S> = {},
): Promise<void> {
  const { config, settings } = readConfig(env, name, options.settings);
  const id = `${name}-${token(systemRandom, 10)}`;
  const logger = createLogger(name, id, config.logLevel);
  const telemetry = new Telemetry({
    service: name,
    id,
    version: packageVersion(),
    metricsPort: config.metrics.port,
    metricsHost: config.metrics.host,
    tracesEndpoint: config.tracesEndpoint,
  });
  const log = logHappenings(logger);
  const runtime = systemRuntime((happening) => {
    log(happening);
    telemetry.listen(happening);
  });
  const wantedNames = subjects(config.prefix);
  const stopSignal = untilAskedToStop(runtime.announce, {
    runsForeignCode: options.runsForeignCode ?? false,
  });
  const connection = connectionSettings(config, wantedNames, id);
  const openBus = async () => {
    const opened = await connectBus({ ...connection, announce: runtime.announce });
    try {
      await (config.provisions ? ensureTopology : checkTopology)(opened, wantedNames, topologyOf(config));
      return { bus: opened, names: await installedNames(opened, wantedNames) };
    } catch (error) {
      await opened.close();
      throw error;
    }
  };
  // A service that answers without NATS reports that NATS is missing, and can wait for ever.
  const waitMs = options.beforeBus ? Number.POSITIVE_INFINITY : config.nats.waitMs;
  const waiting = { runtime, signal: stopSignal.signal, waitMs };
  const headers = fleetHeaders(packageVersion(), config.generation);
  /** Resolves when the service is ready, or when it must stop before that. */
  const begin = async ({ bus, names }: Opened) => {
    const { generation: atMost, oldestGeneration: atLeast } = config;
    const fleet = new Fleet({ bus, names, runtime, atMost, atLeast });
    let service: RunnableService | undefined;
    try {
      await fleet.start();
      telemetry.versionMore = () => ({ generation: fleetView(fleet.members()) });
      service = await build({
        id,
        bus,
        connection,
        names,
        runtime,
        config,
        settings,
        logger,
        telemetry,
        fleet,
        fleetHeaders: headers,
      });
      // The service may have to stop while it starts: stop() must cope with a half-started service and with a
      // second call.
      const first = await Promise.race([service.start().then(() => "started" as const), stopSignal.asked]);
      return { fleet, service, started: first === "started" };
    } catch (error) {
      await service?.stop();
      await fleet.stop();
      throw error;
    }
  };
  const serveOn = async (opened: Opened) => {
    const { bus, names } = opened;
    try {
      await telemetry.start(bus, names, runtime.clock);
      // NATS may go away between two connections or before a first answer: then everything begins anew.
      const begun = await waitForNats(() => begin(opened), waiting);
      if (begun === undefined) return;
      const { fleet, service } = begun;
      const beacon = new ServiceBeacon({
        bus,
        names,
        runtime,
        service: name,
        id,
        describe: () => service.describe?.() ?? {},
        headers,
      });
      try {
        if (begun.started) {
          await beacon.start();
          optimiseEarly();
          telemetry.serving = true;
          tellReady(name, id, logger);
          logger.info({ why: await stopSignal.asked }, "stopping");
          telemetry.serving = false;
        }
      } finally {
        await beacon.stop();
        await service.stop();
        await fleet.stop();
      }
    } finally {
      await telemetry.stop();
      await bus.close();
    }
  };
  const early = await options.beforeBus?.({ runtime, config, settings, logger });
  try {
    const opened = await waitForNats(openBus, waiting);
    if (opened) await serveOn(opened);
  } finally {
    stopSignal.dispose();
    await early?.stop();
  }
  logger.info("stopped");
}

/** A connection, and the subject names of the installation behind it. */
interface Opened {
  bus: Bus;
  names: Subjects;
}

export const topologyOf = (config: EngineConfig): TopologyOptions => ({
  partitions: config.partitions,
  historyShards: config.history.shards,
  replicas: config.replicas,
});

/** Tells a parent process over the IPC channel that the service is ready; people see it in the log. */
function tellReady(service: string, id: string, logger: Logger): void {
  logger.info("ready");
  process.send?.({ ready: true, service, id, pid: process.pid });
}

/** What a connection needs, without the parts that cannot be sent to another thread. */
export type ConnectionSettings = Omit<BusOptions, "announce" | "signal">;

export function connectionSettings(
  config: EngineConfig,
  names: Subjects,
  connectionName: string,
): ConnectionSettings {
  const { url, user, password, token, credsFile, passwordFile, nkeyFile, inboxPrefix, tls } = config.nats;
  if (url === undefined) {
    throw new Fault("config", {
      code: "nats_url_missing",
      message: "NATS_URL is not set",
      hint: "Set it to the address of a NATS server, or run `holdfast dev`, which brings its own.",
    });
  }
  return {
    url: url.split(",").map((one) => one.trim()),
    name: connectionName,
    blobBucket: names.blobBucket,
    replicas: config.replicas,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { pass: password }),
    ...(token === undefined ? {} : { token }),
    ...(credsFile === undefined ? {} : { credsFile }),
    ...(passwordFile === undefined ? {} : { passFile: passwordFile }),
    ...(nkeyFile === undefined ? {} : { nkeyFile }),
    ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
    ...(tls === undefined ? {} : { tls }),
    ...(config.provisions ? {} : { provisioned: true }),
  };
}
