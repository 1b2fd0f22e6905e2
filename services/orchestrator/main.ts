/** The orchestrator as a process. */
import { statSync } from "node:fs";
import { z } from "zod";
import type { Stoppable } from "../../shared/bus/index.ts";
import { startEndpoints } from "../../shared/endpoints/index.ts";
import { requireTtl } from "../../shared/leases/index.ts";
import { once } from "../../shared/runtime/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import { loadApp } from "../../shared/sdk/load-app.ts";
import { type Environment, setting } from "../config.ts";
import { type RunnableService, runService } from "../run-service.ts";
import { packageVersion } from "../version.ts";
import { faultsFrom } from "./fault-points.ts";
import { Orchestrator } from "./orchestrator.ts";

const settings = {
  /** A dead orchestrator's partitions move after this long. */
  HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: setting.wholeNumber(1000, 600_000).default(5000),
  /** Idle instances kept in memory; what is not there is replayed when it is needed. */
  HOLDFAST_ORCHESTRATOR_CACHE: setting.wholeNumber(0, 10_000_000).default(20_000),
  /** Replays before every turn: slow, for finding nondeterministic code. */
  HOLDFAST_ORCHESTRATOR_ALWAYS_REPLAY: setting.flag.default(false),
  /** A turn that runs longer is stopped with its process, and its instance is set aside. */
  HOLDFAST_ORCHESTRATOR_TURN_LIMIT_MS: setting.wholeNumber(100, 600_000).default(10_000),
  /** For fault tests: `point:count` kills the process there. */
  HOLDFAST_ORCHESTRATOR_FAULT: z.string().optional(),
};

export async function runOrchestrator(env: Environment): Promise<void> {
  await runService(
    env,
    "orchestrator",
    async ({ id, bus, connection, names, runtime, config, settings: own }): Promise<RunnableService> => {
      const { appPath } = config;
      const app = await loadApp(appPath);
      const orchestrator = new Orchestrator({
        id,
        bus,
        names,
        runtime,
        app,
        partitions: config.partitions,
        history: config.history,
        replicas: config.replicas,
        leaseTtlMs: requireTtl(own.HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS, "HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS"),
        cacheSize: own.HOLDFAST_ORCHESTRATOR_CACHE,
        alwaysReplay: own.HOLDFAST_ORCHESTRATOR_ALWAYS_REPLAY,
        watchdog: {
          build: fingerprint(appPath),
          limitMs: own.HOLDFAST_ORCHESTRATOR_TURN_LIMIT_MS,
          connection,
        },
        faultPoints: faultsFrom(own.HOLDFAST_ORCHESTRATOR_FAULT),
      });
      let endpoints: Stoppable | undefined;
      return {
        async start() {
          await orchestrator.start();
          const client = new Client({ bus, names });
          const orchestrations = () => [...app.orchestrations.keys()];
          endpoints = await startEndpoints(bus, client, {
            names,
            runtime,
            version: packageVersion(),
            orchestrations,
          });
        },
        stop: once(async () => {
          await endpoints?.stop();
          await orchestrator.stop();
        }),
        describe: orchestrator.describe,
      };
    },
    { settings },
  );
}

/** Tells one deployment of the application from another, as far as its entry shows it. */
function fingerprint(appPath: string | undefined): string {
  const stats = appPath === undefined ? undefined : statSync(appPath, { throwIfNoEntry: false });
  return `${packageVersion()}-${stats ? `${stats.mtimeMs}-${stats.size}` : "unknown"}`;
}
