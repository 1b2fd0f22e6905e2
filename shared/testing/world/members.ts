/** The services of an installation as a test runs them: small, quick to notice a death, on whatever bus they are given. */
import { z } from "zod";
import { Orchestrator, type OrchestratorOptions } from "../../../services/orchestrator/orchestrator.ts";
import { defaultWatcherConfig } from "../../../services/watcher/config.ts";
import { Watcher } from "../../../services/watcher/watcher.ts";
import { workerConfig } from "../../../services/worker/config.ts";
import type { WorkerFaultPoints } from "../../../services/worker/fault-points.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import { SessionService } from "../../../services/worker/sessions/index.ts";
import { workerSettings } from "../../../services/worker/settings.ts";
import { Worker } from "../../../services/worker/worker.ts";
import { type Bus, Payloads, type Subjects } from "../../bus/index.ts";
import type { App } from "../../definitions/index.ts";
import type { Generation } from "../../fleet/index.ts";
import { HistoryStore } from "../../history/index.ts";
import { LeaseKeeper } from "../../leases/index.ts";
import type { Runtime } from "../../runtime/index.ts";

export const historyShards = 2;
export const sessionTtlMs = 3000;

/** Where a member lives. */
export interface Place {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
}

type Own = "bus" | "names" | "runtime" | "history" | "leases" | "cacheSize";

export function orchestratorAt(
  place: Place,
  { layout, ...options }: Omit<OrchestratorOptions, Own> & { layout: "per-instance" | "shared" },
): Orchestrator {
  const bucket = place.names.bucket("leases");
  return new Orchestrator({
    ...options,
    ...place,
    history: { layout, maxOwnStreams: 1000, shards: historyShards },
    leases: new LeaseKeeper({ bus: place.bus, bucket, runtime: place.runtime, ttlMs: 3000 }),
    cacheSize: 1000,
  });
}

export interface WorkerAtOptions {
  app: App;
  host: string;
  /** How long the server waits for an acknowledgement; default 2 s. */
  ackWait?: string;
  generation?: Generation;
  faultPoints: (workerId: string) => WorkerFaultPoints;
}

export function workerAt(place: Place, { app, host, ackWait = "2s", faultPoints, ...rest }: WorkerAtOptions) {
  const settings = { WORKER_ACK_WAIT: ackWait, WORKER_MAX_DELIVERIES: "50" };
  const config = workerConfig(z.object(workerSettings).parse(settings));
  const identity = createIdentity(config, { host, pid: 1 }, place.runtime.random);
  const { bus, names, runtime } = place;
  const base = {
    ...place,
    ...rest,
    app,
    identity,
    config,
    payloads: new Payloads(bus.blobs),
    faultPoints: faultPoints(identity.workerId),
  };
  const leases = new LeaseKeeper({ bus, bucket: names.bucket("leases"), runtime, ttlMs: sessionTtlMs });
  const worker = new Worker(base, { sessions: (deps) => new SessionService({ ...deps, leases }) });
  return {
    id: identity.workerId,
    start: async (): Promise<void> => {
      await leases.start();
      await worker.start();
    },
    stop: (): Promise<void> => worker.stop(),
  };
}

export function watcherAt(
  place: Place,
  {
    id,
    keepEnded = false,
    histories,
    generation,
  }: {
    id: string;
    keepEnded?: boolean | undefined;
    histories: HistoryStore;
    generation?: Generation | undefined;
  },
): Watcher {
  const config = {
    ...defaultWatcherConfig,
    graceMs: sessionTtlMs,
    ...(keepEnded ? { retainForMs: 0 } : {}),
  };
  return new Watcher({ id, ...place, config, histories, ...(generation ? { generation } : {}) });
}

/** For reading and tidying. */
export const historiesAt = (place: Place, replicas: number): HistoryStore =>
  new HistoryStore({ ...place, layout: "shared", maxOwnStreams: 0, shards: historyShards, replicas });
