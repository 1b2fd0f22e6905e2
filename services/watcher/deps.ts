import { InstanceSummary, SessionRecord, WorkerInfo } from "../../schemas/index.ts";
import { Bucket, type Bus, type Subjects, TypedBucket } from "../../shared/bus/index.ts";
import type { Generation } from "../../shared/fleet/index.ts";
import type { SeenHistory } from "../../shared/history/index.ts";
import { LeaseStore } from "../../shared/leases/index.ts";
import type { Runtime } from "../../shared/runtime/index.ts";
import type { WatcherConfig } from "./config.ts";
import type { Counters } from "./counters.ts";
import type { Grace } from "./grace.ts";
import { unreadableRecord, unreadableSummary } from "./unreadable.ts";

/** What retention asks of the histories; `HistoryStore` is it. */
export interface Histories {
  exists(instanceId: string): Promise<boolean>;
  archive(instanceId: string): Promise<void>;
  look(instanceId: string): Promise<SeenHistory>;
  remove(seen: SeenHistory): Promise<void>;
}

export interface Registers {
  readonly sessions: TypedBucket<SessionRecord>;
  readonly instances: TypedBucket<InstanceSummary>;
  readonly workers: TypedBucket<WorkerInfo>;
  readonly settings: Bucket;
  readonly leases: LeaseStore;
}

/** What every step of the watcher is given. */
export interface WatcherDeps {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
  readonly config: WatcherConfig;
  readonly registers: Registers;
  /** What may be written now (E1). */
  readonly generation: Pick<Generation, "allows">;
  readonly counters: Counters;
  readonly grace: Grace;
  /** Still the one to act? A watcher that was paused finds out here. */
  readonly acting: () => boolean;
}

export function openRegisters(bus: Bus, names: Subjects, runtime: Runtime): Registers {
  const { announce } = runtime;
  const deps = { bus, names, runtime };
  const bucket = (name: Parameters<Subjects["bucket"]>[0]) => new Bucket(bus, names.bucket(name));
  const instances = new TypedBucket(bucket("instances"), InstanceSummary, announce, (entry) =>
    unreadableSummary(deps, entry),
  );
  return {
    instances,
    sessions: new TypedBucket(bucket("sessions"), SessionRecord, announce, (entry) =>
      unreadableRecord(deps, instances, entry),
    ),
    workers: new TypedBucket(bucket("workers"), WorkerInfo, announce),
    settings: bucket("settings"),
    leases: new LeaseStore(bus, names.bucket("leases")),
  };
}
