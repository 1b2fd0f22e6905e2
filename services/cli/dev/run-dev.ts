/**
 * Runs all services on one machine: an embedded NATS server unless one is named, and one process per service.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { loadApp } from "../../../shared/app-loading/load-app.ts";
import { connectBus, subjects } from "../../../shared/bus/index.ts";
import { Fault, HoldfastError, messageOf } from "../../../shared/errors/index.ts";
import { maskUrl, once, silent, withoutLogin } from "../../../shared/runtime/index.ts";
import { removeDevFile, writeDevFile } from "../../../shared/sdk/where/index.ts";
import { type EngineConfig, type Environment, readConfig } from "../../config.ts";
import { connectionSettings } from "../../run-service.ts";
import { DevProcesses } from "./dev-processes.ts";
import { devRoles } from "./dev-roles.ts";
import { freePortFrom } from "./free-port-from.ts";
import { NatsKeeper } from "./nats-keeper.ts";
import { type Reloading, reloadOnChange } from "./reload.ts";
import type { ServiceProcess } from "./service-process.ts";
import { packageRoot } from "./watch-files.ts";

interface DevOptions {
  app: string;
  dataDir: string;
  workers: number;
  port: number | undefined;
  /** Load changed code into new processes. */
  watch: boolean;
  /** Each service has the NATS user and the permissions of its role. */
  roles: boolean;
  env: Environment;
  /** Resolves when `dev` is to stop, also while the services still start. */
  stopRequested: Promise<void>;
  /** Called with one line of text for people. */
  onNote: (text: string) => void;
}

export interface RunningDev {
  natsUrl: string;
  prefix: string;
  dashboard: string | undefined;
  pids: {
    /** Undefined if `dev` did not start the NATS server. */
    nats?: number | undefined;
    orchestrator: number | undefined;
    watcher: number | undefined;
    workers: (number | undefined)[];
    gateway?: number | undefined;
  };
  /** Current pids: a worker that died is replaced by another. */
  workerPids(): (number | undefined)[];
  stop(): Promise<void>;
}

/** Resolves when every service is ready. If one cannot start, stops all of them and throws the reason. */
export async function runDev(options: DevOptions): Promise<RunningDev> {
  const { env, onNote } = options;
  const dataDir = resolve(options.dataDir);
  // Checked before anything is started: most first mistakes are in the settings.
  const { config } = readConfig(env, "cli");
  await loadApp(options.app);
  if (config.nats.url !== undefined) {
    if (options.roles) throw rolesElsewhere();
    await requireServer(config);
  }
  const logDir = join(dataDir, "logs");
  makeFolder(logDir);

  const roles = options.roles ? await devRoles(join(dataDir, "security"), env) : undefined;
  const keeper =
    config.nats.url === undefined
      ? new NatsKeeper({
          dataDir: join(dataDir, roles ? "nats-roles" : "nats"),
          port: options.port,
          serverConfig: roles?.serverConfig,
          onNote,
        })
      : undefined;
  let processes: DevProcesses | undefined;
  let reloading: Reloading | undefined;
  let announced = false;
  const stop = once(async () => {
    const reloaded = reloading?.stop();
    // Leave the file of another `dev` alone, which already runs here and is the reason why this one does not.
    if (announced) removeDevFile(dataDir);
    await processes?.stop();
    await reloaded;
    // Last: the services deregister over it.
    await keeper?.stop();
  });
  try {
    const nats = await keeper?.start();
    const natsUrl = nats?.url ?? config.nats.url ?? "";
    await roles?.provision(natsUrl);
    onNote(nats ? `NATS ${nats.version} on ${natsUrl}, data in ${dataDir}` : `NATS at ${maskUrl(natsUrl)}`);
    const served = { ...env, NATS_URL: natsUrl, HOLDFAST_APP: resolve(options.app) };
    processes = new DevProcesses({
      logDir,
      env: served,
      envOf: roles?.envOf,
      onNote,
    });
    const starting = startAll(processes, env, options.workers);
    // After a stop during the start, a failing start is not reported.
    starting.catch(() => undefined);
    const started = await Promise.race([starting, options.stopRequested]);
    if (!started) throw new HoldfastError({ code: "interrupted", message: "stopped while starting" });
    const [orchestrator, watcher, gateway, ...first] = started;
    const running = { orchestrator, workers: first };
    const dashboard = gateway?.url;
    const sync = nats && { sync: nats.sync };
    const workerPids = () => running.workers.map((worker) => worker.pid);
    announced = true;
    if (options.watch) {
      const replaceAll = replacing(processes, running);
      reloading = reloadOnChange({
        root: packageRoot(resolve(options.app)),
        env: served,
        replaceAll,
        onNote,
      });
    }
    writeDevFile(dataDir, {
      pid: process.pid,
      natsUrl: withoutLogin(natsUrl),
      prefix: config.prefix,
      dashboard,
      ...sync,
    });
    return {
      natsUrl,
      prefix: config.prefix,
      dashboard,
      pids: {
        ...(keeper ? { nats: keeper.pid } : {}),
        orchestrator: orchestrator.pid,
        watcher: watcher.pid,
        workers: workerPids(),
        ...(gateway ? { gateway: gateway.process.pid } : {}),
      },
      workerPids,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * RELOAD-1: the orchestrator first, because its start shows whether the code loads. The old workers finish
 * their work while the new ones take new work.
 */
const replacing =
  (processes: DevProcesses, running: { orchestrator: ServiceProcess; workers: ServiceProcess[] }) =>
  async (): Promise<void> => {
    const before = { ...running };
    const started: ServiceProcess[] = [];
    const start = async (name: string, service: string) => {
      const process = await processes.start(name, service);
      started.push(process);
      return process;
    };
    try {
      running.orchestrator = await start("orchestrator", "orchestrator");
      running.workers = await Promise.all(before.workers.map(({ name }) => start(name, "worker")));
    } catch (error) {
      Object.assign(running, before);
      await Promise.all(started.map((process) => processes.retire(process)));
      throw error;
    }
    await Promise.all([before.orchestrator, ...before.workers].map((process) => processes.retire(process)));
  };

const rolesElsewhere = () =>
  new Fault("config", {
    code: "invalid_option",
    message: "--roles: NATS_URL names a server, and `dev` gives roles on a server of its own",
    hint: "Take NATS_URL away, or make keys for that server with `holdfast security init`.",
  });

/**
 * Checks the server once, here, so that an unsuitable server gives one error message and not one per service.
 */
async function requireServer(config: EngineConfig): Promise<void> {
  const connection = connectionSettings(config, subjects(config.prefix), "holdfast-dev");
  await (await connectBus({ ...connection, announce: silent })).close();
}

interface StartedGateway {
  process: ServiceProcess;
  url: string;
}

const startAll = (processes: DevProcesses, env: Environment, workers: number) =>
  Promise.all([
    processes.start("orchestrator", "orchestrator"),
    processes.start("watcher", "watcher"),
    startGateway(processes, env),
    ...Array.from({ length: workers }, (_, index) => processes.start(`worker-${index + 1}`, "worker")),
  ] as const);

const gatewayPort = 4440;
const gatewayAttempts = 5;

/**
 * Uses the usual port or a free one near it: another process may take a port between our check and the
 * gateway's bind.
 */
async function startGateway(processes: DevProcesses, env: Environment): Promise<StartedGateway | undefined> {
  if (!existsSync(fileURLToPath(new URL(`../../gateway/main${extension}`, import.meta.url))))
    return undefined;
  // 0 means any free port, as everywhere; `dev` chooses it, because it has to print the address.
  const chosen = env.GATEWAY_PORT === "0" ? undefined : env.GATEWAY_PORT;
  for (let attempt = 1; ; attempt++) {
    const port = chosen ?? String(await freePortFrom(gatewayPort));
    try {
      const process = await processes.start("gateway", "gateway", { GATEWAY_PORT: port });
      return { process, url: `http://127.0.0.1:${port}` };
    } catch (error) {
      if (chosen !== undefined || attempt === gatewayAttempts) throw error;
    }
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
  } catch (error) {
    throw new Fault("config", {
      code: "data_dir_unusable",
      message: `nothing can be stored in ${path}: ${messageOf(error)}`,
      hint: "Choose another folder with --data-dir.",
    });
  }
}

/** This file runs from sources or from the build; the gateway's file has the same extension. */
const extension = fileURLToPath(import.meta.url).endsWith(".ts") ? ".ts" : ".js";
