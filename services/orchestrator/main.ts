/** The orchestrator as a process. */
import { statSync } from "node:fs";
import { loadApp } from "../../shared/app-loading/load-app.ts";
import type { Stoppable } from "../../shared/bus/index.ts";
import { KeyedCapabilities } from "../../shared/capabilities/index.ts";
import { startEndpoints } from "../../shared/endpoints/index.ts";
import { requireTtl } from "../../shared/leases/index.ts";
import { once } from "../../shared/runtime/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import type { Environment } from "../config.ts";
import { faultsFrom } from "../fault-points.ts";
import { type RunnableService, runService } from "../run-service.ts";
import { packageVersion } from "../version.ts";
import { KeysFile } from "./capabilities/keys-file.ts";
import { leasesOnThread, leaseThread } from "./lease-thread.ts";
import { Orchestrator } from "./orchestrator.ts";
import { turnMarkBytes } from "./quarantine/turn-mark.ts";
import { orchestratorSettings } from "./settings.ts";

export async function runOrchestrator(env: Environment): Promise<void> {
  // The thread takes longest to start.
  const thread = leaseThread();
  await runService(
    env,
    "orchestrator",
    async ({
      id,
      bus,
      connection,
      names,
      runtime,
      config,
      settings: own,
      fleet,
    }): Promise<RunnableService> => {
      const { appPath } = config;
      const build = fingerprint(appPath);
      const mark = new SharedArrayBuffer(turnMarkBytes);
      const leases = leasesOnThread({
        thread,
        id,
        bucket: names.engineBucket,
        runtime,
        ttlMs: requireTtl(own.HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS, "HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS"),
        watchdog: {
          connection,
          bucket: names.bucket("settings"),
          mark,
          limitMs: own.HOLDFAST_ORCHESTRATOR_TURN_LIMIT_MS,
          build,
        },
      });
      // It connects while the application is loaded; the orchestrator waits for it.
      leases.start().catch(() => undefined);
      const app = await loadApp(appPath).catch(async (error: unknown) => {
        await leases.stop();
        throw error;
      });
      const keysPath = own.HOLDFAST_ORCHESTRATOR_CAPABILITY_KEYS;
      const keys = keysPath === undefined ? undefined : new KeysFile(keysPath, runtime);
      const capabilities =
        keys &&
        new KeyedCapabilities({
          ...keys,
          mayWrite: () => fleet.allows(2),
          acceptMissing: own.HOLDFAST_ORCHESTRATOR_CAPABILITIES === "accept",
          onMissing: () => runtime.announce({ kind: "capability.missing" }),
        });
      const orchestrator = new Orchestrator({
        id,
        bus,
        names,
        runtime,
        app,
        partitions: config.partitions,
        history: config.history,
        replicas: config.replicas,
        generation: fleet,
        capabilities,
        leases,
        cacheSize: own.HOLDFAST_ORCHESTRATOR_CACHE,
        alwaysReplay: own.HOLDFAST_ORCHESTRATOR_ALWAYS_REPLAY,
        lane: own.HOLDFAST_ORCHESTRATOR_LANE,
        historyLimit: own.HOLDFAST_ORCHESTRATOR_HISTORY_LIMIT,
        watchdog: { build, mark },
        faultPoints: faultsFrom(own.HOLDFAST_ORCHESTRATOR_FAULT),
      });
      let endpoints: Stoppable | undefined;
      return {
        async start() {
          await keys?.start();
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
          await keys?.stop();
        }),
        describe: orchestrator.describe,
      };
    },
    { settings: orchestratorSettings },
  );
}

/** Differs between two deployments of the application, as far as its entry file shows it. */
function fingerprint(appPath: string | undefined): string {
  const stats = appPath === undefined ? undefined : statSync(appPath, { throwIfNoEntry: false });
  return `${packageVersion()}-${stats ? `${stats.mtimeMs}-${stats.size}` : "unknown"}`;
}
