/** All services on one machine: a NATS server of our own unless one is named, and one process for each service. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Fault } from "../../../shared/errors/index.ts";
import { once } from "../../../shared/runtime/index.ts";
import { loadApp } from "../../../shared/sdk/load-app.ts";
import { type Environment, readConfig } from "../../config.ts";
import { packageDir } from "../../version.ts";
import { removeDevFile, writeDevFile } from "../dev-file.ts";
import { freePortFrom } from "./free-port-from.ts";
import { LogTail, shownLogLine } from "./log-tail.ts";
import { NatsKeeper } from "./nats-keeper.ts";
import { type Death, ServiceProcess } from "./service-process.ts";

export interface DevOptions {
  app: string;
  dataDir: string;
  workers: number;
  port: number | undefined;
  env: Environment;
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
  stop(): Promise<void>;
}

const gatewayPort = 4440;

/** Resolves when every service is ready. Where one cannot start, everything is stopped again and the reason thrown. */
export async function runDev(options: DevOptions): Promise<RunningDev> {
  const { onNote } = options;
  const dataDir = resolve(options.dataDir);
  const app = resolve(options.app);
  // Checked before anything is started: most first mistakes are here.
  const { config } = readConfig(options.env, "cli");
  await loadApp(options.app);
  mkdirSync(join(dataDir, "logs"), { recursive: true });

  const keeper =
    config.nats.url === undefined
      ? new NatsKeeper({ dataDir: join(dataDir, "nats"), port: options.port, onNote })
      : undefined;
  const services: ServiceProcess[] = [];
  const tails: LogTail[] = [];
  const stop = once(async () => {
    removeDevFile(dataDir);
    await Promise.all(services.map((service) => service.stop()));
    for (const tail of tails) tail.stop();
    // Last: the others say good-bye over it.
    await keeper?.stop();
  });

  try {
    const nats = await keeper?.start();
    const natsUrl = nats?.url ?? config.nats.url ?? "";
    onNote(nats ? `NATS ${nats.version} on ${natsUrl}, data in ${dataDir}` : `NATS at ${natsUrl}`);
    const hasGateway = existsSync(fileURLToPath(new URL(`../../gateway/main${extension}`, import.meta.url)));
    const dashboardPort = hasGateway
      ? await freePortFrom(Number(options.env.GATEWAY_PORT ?? gatewayPort))
      : 0;
    const env: Environment = {
      ...options.env,
      NATS_URL: natsUrl,
      HOLDFAST_APP: app,
      GATEWAY_PORT: String(dashboardPort),
    };
    const add = (name: string, service: string): ServiceProcess => {
      const logFile = join(dataDir, "logs", `${name}.log`);
      // Only of this run: it cannot grow for ever, and nobody reads old words as new ones.
      writeFileSync(logFile, "");
      const process = new ServiceProcess({
        name,
        entry: join(packageDir(), "bin", "holdfast.js"),
        args: [service],
        env,
        logFile,
        onDeath: (death, delayMs) => onNote(`${name} ${ending(death)}; starting it again in ${delayMs} ms`),
      });
      services.push(process);
      tails.push(
        new LogTail(logFile, (line) => {
          const shown = shownLogLine(name, line);
          if (shown !== undefined) onNote(shown);
        }),
      );
      return process;
    };
    const orchestrator = add("orchestrator", "orchestrator");
    const watcher = add("watcher", "watcher");
    const workers = Array.from({ length: options.workers }, (_, index) =>
      add(`worker-${index + 1}`, "worker"),
    );
    const gateway = hasGateway ? add("gateway", "gateway") : undefined;
    await Promise.all(services.map((service) => started(service, dataDir)));
    const dashboard = gateway && `http://127.0.0.1:${dashboardPort}`;
    const sync = nats && { sync: nats.sync };
    writeDevFile(dataDir, { pid: process.pid, natsUrl, prefix: config.prefix, dashboard, ...sync });
    return {
      natsUrl,
      prefix: config.prefix,
      dashboard,
      pids: {
        ...(keeper ? { nats: keeper.pid } : {}),
        orchestrator: orchestrator.pid,
        watcher: watcher.pid,
        workers: workers.map((worker) => worker.pid),
        ...(gateway ? { gateway: gateway.pid } : {}),
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** We run from sources or from the build; the gateway is looked for where we are. */
const extension = fileURLToPath(import.meta.url).endsWith(".ts") ? ".ts" : ".js";

async function started(service: ServiceProcess, dataDir: string): Promise<void> {
  const outcome = await service.start();
  if (outcome === "ready") return;
  const logFile = join(dataDir, "logs", `${service.name}.log`);
  throw new Fault("config", {
    code: "service_failed",
    message: `${service.name} did not start: ${lastWords(logFile) ?? ending(outcome)}`,
    hint: `Its whole log is in ${logFile}.`,
  });
}

/** What a service that cannot start says, see report-error.ts. */
function lastWords(logFile: string): string | undefined {
  const lines = readFileSync(logFile, "utf8").trimEnd().split("\n");
  const said = lines.findLast((line) => line.startsWith("holdfast: "));
  return (said ?? lines.at(-1))?.replace(/^holdfast: /, "") || undefined;
}

const ending = ({ code, signal }: Death): string =>
  signal !== null ? `was ended by ${signal}` : `has ended with code ${code ?? "unknown"}`;
