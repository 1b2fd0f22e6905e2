/** What every part of a worker is given. Plain activities and sessions meet only here. */
import type { WorkerInfo } from "../../schemas/index.ts";
import type { Bus, Payloads, Subjects } from "../../shared/bus/index.ts";
import type { App } from "../../shared/definitions/index.ts";
import type { Generation } from "../../shared/fleet/index.ts";
import type { Runtime, Service } from "../../shared/runtime/index.ts";
import type { WorkerConfig } from "./config.ts";
import type { WorkerFaultPoints } from "./fault-points.ts";
import type { WorkerIdentity } from "./identity.ts";

/** All workers alive as last heard of, this one included. May lag: decide placement from it, nothing else. */
export interface WorkersView {
  workers(): readonly WorkerInfo[];
}

export interface WorkerDeps {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
  readonly app: App;
  readonly identity: WorkerIdentity;
  readonly config: WorkerConfig;
  /** User values to the wire and back; big ones by way of the blob store. */
  readonly payloads: Pick<Payloads, "wrap" | "wrapSync" | "wrapText" | "wrapTextSync" | "unwrap">;
  /** What may be written now (E1). */
  readonly generation: Pick<Generation, "allows" | "isLater">;
  /** What this worker says of itself beside its entry. */
  readonly fleetHeaders: Record<string, string>;
  /** Switched on by tests only. */
  readonly faultPoints?: WorkerFaultPoints | undefined;
  readonly view?: WorkersView;
  /** Absent: results of what came by the lane are told one by one. */
  readonly recordings?: { wait(key: string): Promise<boolean> };
  /** The figures in the register are no longer right: write them soon. Cheap, call it as often as you like. */
  readonly loadChanged: () => void;
  /** The same for calls on sessions, of which there are many: not so soon. */
  readonly callsChanged?: () => void;
}

/** What the session side adds to this worker's `WorkerInfo`. */
export type SessionLoad = Pick<WorkerInfo, "perType" | "pools" | "warm" | "models" | "sessions"> & {
  quotas: WorkerInfo["quotas"];
  used: number;
  max: number;
  calls: { used: number; max: number };
  resourcesUsed: Record<string, number>;
};

/** The session side of a worker, as the worker sees it. */
export interface SessionPart extends Service {
  load(): SessionLoad;
  /** Claims nothing more, finishes, gives up what it holds; `stop` follows. */
  drain(): Promise<void>;
}
