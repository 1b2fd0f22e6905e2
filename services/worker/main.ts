/** The worker as a process: settings, connection, the user's application, and then work until told to stop. */
import { hostname } from "node:os";
import { loadApp } from "../../shared/app-loading/load-app.ts";
import { Payloads } from "../../shared/bus/index.ts";
import { type Environment, readConfig } from "../config.ts";
import { faultsFrom } from "../fault-points.ts";
import { runService } from "../run-service.ts";
import { refuseUnknownNames, refuseUnknownSettings, workerConfig } from "./config.ts";
import { createIdentity } from "./identity.ts";
import { sessionSide } from "./session-side.ts";
import { workerSettings } from "./settings.ts";
import { Worker } from "./worker.ts";

export async function runWorker(env: Environment): Promise<void> {
  // Before anything is connected: what is wrong with the settings is wrong without a server too.
  refuseUnknownSettings(env);
  const { config: engine, settings } = readConfig(env, "worker", workerSettings);
  const config = workerConfig(settings);
  const app = await loadApp(engine.appPath);
  refuseUnknownNames(config, app);
  await runService(
    env,
    "worker",
    ({ bus, names, runtime, connection, fleet, fleetHeaders }) => {
      const identity = createIdentity(config, { host: hostname(), pid: process.pid }, runtime.random);
      const payloads = new Payloads(bus.blobs);
      return new Worker(
        {
          bus,
          names,
          runtime,
          app,
          identity,
          config,
          payloads,
          generation: fleet,
          fleetHeaders,
          faultPoints: faultsFrom(settings.WORKER_FAULT),
        },
        {
          sessions: (deps) => sessionSide(deps, connection, engine.appPath),
          // As if the process had been told: it stops what is left and goes.
          onDrained: () => process.kill(process.pid, "SIGTERM"),
        },
      );
    },
    { settings: workerSettings, runsForeignCode: true },
  );
}
