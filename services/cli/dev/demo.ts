/** `dev --demo <module>`: runs the module's `runDemo` with a client and with workers it may kill. */

import { importUserModule } from "../../../shared/app-loading/load-app.ts";
import { connectBus, subjects } from "../../../shared/bus/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { Client, type DemoStage, type RunDemo } from "../../../shared/sdk/index.ts";
import { type Environment, readConfig } from "../../config.ts";
import { connectionSettings } from "../../run-service.ts";
import type { RunningDev } from "./run-dev.ts";

type DemoShow = Pick<DemoStage, "input" | "staysUp" | "say" | "progress">;

/** Called before anything is started: a wrong path is the most common mistake. */
export async function loadDemo(path: string): Promise<RunDemo> {
  const { runDemo } = await importUserModule(path);
  if (typeof runDemo === "function") return runDemo as RunDemo;
  throw new Fault("config", {
    code: "invalid_option",
    message: `--demo ${path}: the module exports no function runDemo`,
  });
}

export async function showDemo(
  runDemo: RunDemo,
  dev: RunningDev,
  env: Environment,
  show: DemoShow,
): Promise<unknown> {
  const { config } = readConfig({ ...env, NATS_URL: dev.natsUrl }, "cli");
  const names = subjects(config.prefix);
  const bus = await connectBus({ ...connectionSettings(config, names, "holdfast-demo"), announce: silent });
  const client = new Client({ bus, names });
  try {
    const killWorker = (workerId: string) => kill(client, dev, workerId);
    return await runDemo({ client, dashboard: dev.dashboard, killWorker, ...show });
  } finally {
    await client.close();
  }
}

/**
 * Kills only workers of this `dev`: other workers may use the same server, and their pids mean nothing on
 * this machine.
 */
async function kill(client: Client, dev: RunningDev, workerId: string): Promise<number> {
  const worker = (await client.workers.list()).find((one) => one.workerId === workerId);
  if (worker === undefined || !dev.workerPids().includes(worker.pid)) {
    throw new Fault("application", {
      code: "worker_not_found",
      message: `worker ${workerId} was not started by this \`holdfast dev\``,
    });
  }
  process.kill(worker.pid, "SIGKILL");
  return Date.now();
}
