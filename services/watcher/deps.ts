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

/** What retention needs of the histories; `HistoryStore` implements it. */
export interface Histories {
  exists(instanceId: string): Promise<boolean>;
  archive(instanceId: string): Promise<void>;
  look(instanceId: string): Promise<SeenHistory>;
  remove(seen: SeenHistory): Promise<void>;
  /** Returns false if the instance has changed since `seen`. */
  forgetUnstarted(seen: SeenHistory): Promise<boolean>;
}

export interface Registers {
  readonly sessions: TypedBucket<SessionRecord>;
  readonly instances: TypedBucket<InstanceSummary>;
  readonly workers: TypedBucket<WorkerInfo>;
  readonly settings: Bucket;
  readonly leases: LeaseStore;
}

/** Parts that every step of the watcher receives. */
export interface WatcherDeps {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
  readonly config: WatcherConfig;
  readonly registers: Registers;
  /** Which generation of messages may be written now (E1). */
  readonly generation: Pick<Generation, "allows">;
  readonly counters: Counters;
  readonly grace: Grace;
  /**
   * True while this watcher holds the watcher lease. A watcher that was paused finds out here that it lost
   * the lease.
   */
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
