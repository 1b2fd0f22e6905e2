/**
 * The worker as a process: reads settings, connects, loads the user's application and works until it is
 * stopped.
 */
import { hostname } from "node:os";
import { loadApp } from "../../shared/app-loading/load-app.ts";
import { Payloads } from "../../shared/bus/index.ts";
import { renewalThread, type ThreadSetup } from "../../shared/leases/index.ts";
import { startEarly } from "../../shared/runtime/index.ts";
import { type Environment, readConfig } from "../config.ts";
import { faultsFrom } from "../fault-points.ts";
import { runService } from "../run-service.ts";
import { refuseUnknownNames, refuseUnknownSettings, workerConfig } from "./config.ts";
import { createIdentity } from "./identity.ts";
import { sessionSide } from "./session-side.ts";
import { workerSettings } from "./settings.ts";
import type { Will, WillMessage } from "./supervise/last-will.ts";
import { Worker } from "./worker.ts";

export async function runWorker(env: Environment): Promise<void> {
  // Before connecting: wrong settings are reported even if no server can be reached.
  refuseUnknownSettings(env);
  const { config: engine, settings } = readConfig(env, "worker", workerSettings);
  const config = workerConfig(settings);
  // The thread takes longest to start.
  const leaseThread = startEarly<ThreadSetup>(renewalThread);
  const app = await loadApp(engine.appPath);
  refuseUnknownNames(config, app);
  await runService(
    env,
    "worker",
    ({ bus, names, runtime, connection, fleet, fleetHeaders }) => {
      const identity = createIdentity(config, { host: hostname(), pid: process.pid }, runtime.random);
      const payloads = new Payloads(bus.blobs);
      const dead = { holder: identity.workerId, bucket: names.bucket("leases"), prefix: names.prefix };
      const will: Will = { connection, dead };
      const supervised = settings.WORKER_SUPERVISED === "child";
      if (supervised) process.send?.({ kind: "will", will } satisfies WillMessage);
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
          sessions: (deps) =>
            sessionSide(deps, connection, engine.appPath, leaseThread, supervised ? undefined : will),
          // The same path as a signal from outside: the process stops what is left and exits.
          onDrained: () => process.kill(process.pid, "SIGTERM"),
        },
      );
    },
    { settings: workerSettings, runsForeignCode: true },
  );
}
