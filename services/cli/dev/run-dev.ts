/** All services on one machine: a NATS server of our own unless one is named, and one process for each service. */
import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { loadApp } from "../../../shared/app-loading/load-app.ts";
import { connectBus, subjects } from "../../../shared/bus/index.ts";
import { Fault, HoldfastError } from "../../../shared/errors/index.ts";
import { once, silent } from "../../../shared/runtime/index.ts";
import { maskUrl } from "../../../shared/runtime/server-address.ts";
import { removeDevFile, writeDevFile } from "../../../shared/sdk/where/dev-file.ts";
import { type EngineConfig, type Environment, readConfig } from "../../config.ts";
import { connectionSettings } from "../../run-service.ts";
import { DevProcesses } from "./dev-processes.ts";
import { freePortFrom } from "./free-port-from.ts";
import { NatsKeeper } from "./nats-keeper.ts";
import type { ServiceProcess } from "./service-process.ts";

export interface DevOptions {
  app: string;
  dataDir: string;
  workers: number;
  port: number | undefined;
  env: Environment;
  /** Told to stop: also while the services start. */
  told: Promise<void>;
  /** For people, a line at a time. */
  onNote: (text: string) => void;
}

export interface RunningDev {
  natsUrl: string;
  prefix: string;
  dashboard: string | undefined;
  pids: {
    /** Absent where the server was there before us. */
    nats?: number | undefined;
    orchestrator: number | undefined;
    watcher: number | undefined;
    workers: (number | undefined)[];
    gateway?: number | undefined;
  };
  /** Those of now: a worker that died has another one in its place. */
  workerPids(): (number | undefined)[];
  stop(): Promise<void>;
}

/** Resolves when every service is ready. Where one cannot start, everything is stopped again and the reason thrown. */
export async function runDev(options: DevOptions): Promise<RunningDev> {
  const { env, onNote } = options;
  const dataDir = resolve(options.dataDir);
  // Checked before anything is started: most first mistakes are here.
  const { config } = readConfig(env, "cli");
  await loadApp(options.app);
  if (config.nats.url !== undefined) await requireServer(config);
  const logDir = join(dataDir, "logs");
  makeFolder(logDir);

  const keeper =
    config.nats.url === undefined
      ? new NatsKeeper({ dataDir: join(dataDir, "nats"), port: options.port, onNote })
      : undefined;
  let crew: DevProcesses | undefined;
  let announced = false;
  const stop = once(async () => {
    // Not somebody else's, who runs here already and is the reason why we do not.
    if (announced) removeDevFile(dataDir);
    await crew?.stop();
    // Last: the others say good-bye over it.
    await keeper?.stop();
  });
  try {
    const nats = await keeper?.start();
    const natsUrl = nats?.url ?? config.nats.url ?? "";
    onNote(nats ? `NATS ${nats.version} on ${natsUrl}, data in ${dataDir}` : `NATS at ${maskUrl(natsUrl)}`);
    crew = new DevProcesses({
      logDir,
      env: { ...env, NATS_URL: natsUrl, HOLDFAST_APP: resolve(options.app) },
      onNote,
    });
    const starting = startAll(crew, env, options.workers);
    // Given up on, what does not start any more is no news.
    starting.catch(() => undefined);
    const started = await Promise.race([starting, options.told]);
    if (!started) throw new HoldfastError({ code: "interrupted", message: "told to stop while starting" });
    const [orchestrator, watcher, gateway, ...workers] = started;
    const dashboard = gateway?.url;
    const sync = nats && { sync: nats.sync };
    const workerPids = () => workers.map((worker) => worker.pid);
    announced = true;
    writeDevFile(dataDir, { pid: process.pid, natsUrl, prefix: config.prefix, dashboard, ...sync });
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

/** Asked once, here, so that a server that will not do is one sentence and not one from each service. */
async function requireServer(config: EngineConfig): Promise<void> {
  const connection = connectionSettings(config, subjects(config.prefix), "holdfast-dev");
  await (await connectBus({ ...connection, announce: silent })).close();
}

interface StartedGateway {
  process: ServiceProcess;
  url: string;
}

const startAll = (crew: DevProcesses, env: Environment, workers: number) =>
  Promise.all([
    crew.start("orchestrator", "orchestrator"),
    crew.start("watcher", "watcher"),
    startGateway(crew, env),
    ...Array.from({ length: workers }, (_, index) => crew.start(`worker-${index + 1}`, "worker")),
  ] as const);

const gatewayPort = 4440;
const gatewayAttempts = 5;

/** On its usual port or a free one near it: somebody else may take a port between our look and the gateway's. */
async function startGateway(crew: DevProcesses, env: Environment): Promise<StartedGateway | undefined> {
  if (!existsSync(fileURLToPath(new URL(`../../gateway/main${extension}`, import.meta.url))))
    return undefined;
  // 0 is any free one, as everywhere; here it is chosen by us, who have to say where to look.
  const chosen = env.GATEWAY_PORT === "0" ? undefined : env.GATEWAY_PORT;
  for (let attempt = 1; ; attempt++) {
    const port = chosen ?? String(await freePortFrom(gatewayPort));
    try {
      const process = await crew.start("gateway", "gateway", { GATEWAY_PORT: port });
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
      message: `nothing can be stored in ${path}: ${error instanceof Error ? error.message : String(error)}`,
      hint: "Choose another folder with --data-dir.",
    });
  }
}

/** We run from sources or from the build; the gateway is looked for where we are. */
const extension = fileURLToPath(import.meta.url).endsWith(".ts") ? ".ts" : ".js";
