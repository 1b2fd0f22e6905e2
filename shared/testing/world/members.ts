/** The services of an installation for tests: small, quick to notice a death, on any bus. */

import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { SessionAtPoint } from "../../../services/fault-points.ts";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { Orchestrator, type OrchestratorOptions } from "../../../services/orchestrator/orchestrator.ts";
import { defaultWatcherConfig, type WatcherConfig } from "../../../services/watcher/config.ts";
import { Watcher } from "../../../services/watcher/watcher.ts";
import { workerConfig } from "../../../services/worker/config.ts";
import type { WorkerFaultPoint, WorkerFaultPoints } from "../../../services/worker/fault-points.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import { SessionService } from "../../../services/worker/sessions/index.ts";
import { workerSettings } from "../../../services/worker/settings.ts";
import type { Vitals } from "../../../services/worker/vitals.ts";
import { Worker } from "../../../services/worker/worker.ts";
import { type Bus, Payloads, type Subjects } from "../../bus/index.ts";
import { capabilityKey, KeyedCapabilities } from "../../capabilities/index.ts";
import type { App } from "../../definitions/index.ts";
import type { Generation } from "../../fleet/index.ts";
import { HistoryStore } from "../../history/index.ts";
import { LeaseKeeper } from "../../leases/index.ts";
import type { Runtime } from "../../runtime/index.ts";

/** Made for each process: orchestrators of one world share it. */
const keys = [capabilityKey(randomBytes(32).toString("base64url"))];

export const historyShards = 2;
export const sessionTtlMs = 3000;

/** The bus, the names and the runtime of a member. */
export interface Place {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
}

type Own = "bus" | "names" | "runtime" | "history" | "leases";

export function orchestratorAt(
  place: Place,
  {
    layout,
    ownAfterMs = 1000,
    cacheSize = 1000,
    ...options
  }: Omit<OrchestratorOptions, Own | "cacheSize"> & {
    layout: "per-instance" | "shared";
    ownAfterMs?: number | undefined;
    cacheSize?: number | undefined;
  },
): Orchestrator {
  const bucket = place.names.engineBucket;
  const { generation } = options;
  return new Orchestrator({
    // In a mixed fleet some tasks are sent, and some reports made, by processes that know of none.
    capabilities: new KeyedCapabilities({
      keys: () => keys,
      mayWrite: () => generation?.allows(2) ?? true,
      acceptMissing: generation !== undefined,
    }),
    ...options,
    ...place,
    history: { layout, maxOwnStreams: 1000, ownAfterMs, shards: historyShards },
    leases: new LeaseKeeper({ bus: place.bus, bucket, runtime: place.runtime, ttlMs: 3000 }),
    cacheSize,
  });
}

/**
 * Called at every fault point that a member reaches, with the session whose work has got there; `die` kills the
 * member.
 */
export type OnPoint = (
  point: FaultPoint | WorkerFaultPoint,
  memberId: string,
  die: () => void,
  session?: SessionAtPoint,
) => void;

/** Placement looks at how late a worker's event loop runs: it must not depend on how busy this machine is. */
const calm: Vitals = {
  start: () => undefined,
  stop: () => undefined,
  read: () => ({ rssBytes: 0, eventLoopDelayMs: 0 }),
};

interface WorkerAtOptions {
  app: App;
  host: string;
  /** How long the server waits for an acknowledgement; default 2 s. */
  ackWait?: string;
  /** Lease of sessions that set none; undefined: as in production. */
  leaseTtl?: string;
  /** More settings of the worker, such as `WORKER_TAGS`. */
  settings?: Record<string, string> | undefined;
  generation?: Generation;
  faultPoints: (workerId: string) => WorkerFaultPoints;
}

export function workerAt(
  place: Place,
  { app, host, ackWait = "2s", leaseTtl, settings = {}, faultPoints, ...rest }: WorkerAtOptions,
) {
  const given = {
    WORKER_ACK_WAIT: ackWait,
    WORKER_MAX_DELIVERIES: "50",
    ...(leaseTtl === undefined ? {} : { WORKER_LEASE_TTL: leaseTtl }),
    ...settings,
  };
  const config = workerConfig(z.object(workerSettings).parse(given));
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
  const worker = new Worker(base, {
    sessions: (deps) => new SessionService({ ...deps, leases }),
    vitals: calm,
  });
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
    settings = {},
    histories,
    generation,
  }: {
    id: string;
    keepEnded?: boolean | undefined;
    settings?: Partial<WatcherConfig> | undefined;
    histories: HistoryStore;
    generation?: Generation | undefined;
  },
): Watcher {
  const config = {
    ...defaultWatcherConfig,
    graceMs: sessionTtlMs,
    ...(keepEnded ? { retainForMs: 0 } : {}),
    ...settings,
  };
  return new Watcher({ id, ...place, config, histories, ...(generation ? { generation } : {}) });
}

/** The history store, for reading and cleaning up. */
export const historiesAt = (place: Place, replicas: number): HistoryStore =>
  new HistoryStore({ ...place, layout: "shared", maxOwnStreams: 0, shards: historyShards, replicas });
