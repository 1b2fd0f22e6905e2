/** From environment to a running service and back: connect, create what is missing, start, say ready, wait, stop. */

import {
  type Bus,
  type BusOptions,
  connectBus,
  ensureTopology,
  type Subjects,
  subjects,
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
import { untilToldToStop } from "./stop-signal.ts";
import { packageVersion } from "./version.ts";
import { waitForNats } from "./wait-for-nats.ts";

export interface ServiceDeps<S extends SettingsShape = Record<never, never>> {
  /** This process's own id, a token: name and incarnation. */
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
  /** What may be written now, and who holds it back (E1). */
  fleet: Fleet;
  /** What this process says of itself beside its entry in `services` or `workers`. */
  fleetHeaders: Record<string, string>;
}

export interface RunnableService extends Service {
  /** What to show of this service in the `services` bucket beside the usual. Workers have a bucket of their own. */
  describe?: Describe;
}

/** What is known before there is a bus. */
export type EarlyDeps<S extends SettingsShape> = Pick<
  ServiceDeps<S>,
  "runtime" | "config" | "settings" | "logger"
>;

export interface RunServiceOptions<S extends SettingsShape> {
  /** Settings this service alone understands: variable name → schema. */
  settings?: S;
  /** Code of users runs on the main thread: an exception nobody caught is said and survived. */
  runsForeignCode?: boolean;
  /** Answers before there is a bus: such a service waits for NATS instead of ending without it. */
  beforeBus?: (deps: EarlyDeps<S>) => Promise<{ stop(): Promise<void> }>;
}

/** Resolves when the service was told to stop (SIGINT, SIGTERM, or its parent is gone) and has stopped. */
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
  const names = subjects(config.prefix);
  const stopSignal = untilToldToStop(runtime.announce, { runsForeignCode: options.runsForeignCode ?? false });
  const connection = connectionSettings(config, names, id);
  const openBus = async () => {
    const opened = await connectBus({ ...connection, announce: runtime.announce });
    try {
      await ensureTopology(opened, names, {
        partitions: config.partitions,
        historyShards: config.history.shards,
        replicas: config.replicas,
      });
      return opened;
    } catch (error) {
      await opened.close();
      throw error;
    }
  };
  // One that answers without NATS says so to whoever asks, and may as well wait.
  const waitMs = options.beforeBus ? Number.POSITIVE_INFINITY : config.nats.waitMs;
  const waiting = { runtime, signal: stopSignal.signal, waitMs };
  const headers = fleetHeaders(packageVersion(), config.generation);
  /** Up to where the service is ready, or was told to stop meanwhile. */
  const begin = async (bus: Bus) => {
    const fleet = new Fleet({ bus, names, runtime, atMost: config.generation });
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
      // Told to stop while starting: stop() must cope, twice is once and half is enough.
      const first = await Promise.race([service.start().then(() => "started" as const), stopSignal.told]);
      return { fleet, service, started: first === "started" };
    } catch (error) {
      await service?.stop();
      await fleet.stop();
      throw error;
    }
  };
  const serveOn = async (bus: Bus) => {
    try {
      await telemetry.start(bus, names, runtime.clock);
      // NATS may go between two connections, or before a first answer: what was begun is begun anew.
      const begun = await waitForNats(() => begin(bus), waiting);
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
          logger.info({ why: await stopSignal.told }, "stopping");
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
    const bus = await waitForNats(openBus, waiting);
    if (bus) await serveOn(bus);
  } finally {
    stopSignal.dispose();
    await early?.stop();
  }
  logger.info("stopped");
}

/** Whoever started us as a child hears it on the channel between us; people see it in the log. */
function tellReady(service: string, id: string, logger: Logger): void {
  logger.info("ready");
  process.send?.({ ready: true, service, id, pid: process.pid });
}

/** What a connection needs, less what cannot be handed to another thread. */
export type ConnectionSettings = Omit<BusOptions, "announce" | "signal">;

export function connectionSettings(
  config: EngineConfig,
  names: Subjects,
  connectionName: string,
): ConnectionSettings {
  const { url, user, password, token, credsFile } = config.nats;
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
  };
}
