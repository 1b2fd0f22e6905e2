/** Dependencies of every part of a worker. Plain activities and sessions share nothing but these. */
import type { WorkerInfo } from "../../schemas/index.ts";
import type { Bus, Payloads, Subjects } from "../../shared/bus/index.ts";
import type { App } from "../../shared/definitions/index.ts";
import type { Generation } from "../../shared/fleet/index.ts";
import type { Runtime, Service } from "../../shared/runtime/index.ts";
import type { WorkerConfig } from "./config.ts";
import type { WorkerFaultPoints } from "./fault-points.ts";
import type { WorkerIdentity } from "./identity.ts";
import type { Recordings } from "./lane/index.ts";

/**
 * The workers alive according to the register, this one included. The view may lag: use it for placement
 * only.
 */
interface WorkersView {
  workers(): readonly WorkerInfo[];
}

export interface WorkerDeps {
  readonly bus: Bus;
  readonly names: Subjects;
  /** `runtime.clock` is the server's clock. */
  readonly runtime: Runtime;
  readonly app: App;
  readonly identity: WorkerIdentity;
  readonly config: WorkerConfig;
  /** Turns user values into payloads and back; big values go through the blob store. */
  readonly payloads: Pick<Payloads, "wrap" | "wrapSync" | "wrapText" | "wrapTextSync" | "unwrap">;
  /** The wire generation in which this worker may write now (E1). */
  readonly generation: Pick<Generation, "allows" | "isLater">;
  /** Headers that this worker adds to its entry in the register. */
  readonly fleetHeaders: Record<string, string>;
  /** Set by tests only. */
  readonly faultPoints?: WorkerFaultPoints | undefined;
  readonly view?: WorkersView;
  /** Undefined: each result of work that came by the lane is reported by itself. */
  readonly recordings?: Pick<Recordings, "wait" | "waitFor">;
  /** Call when the load has changed: the worker soon writes it to the register. Cheap to call often. */
  readonly loadChanged: () => void;
  /** The same for calls on sessions. They are frequent, so the worker waits longer before it writes. */
  readonly callsChanged?: () => void;
}

/** The part of this worker's `WorkerInfo` that describes its sessions. */
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
  /** Stops claiming, lets running calls finish and releases the sessions; `stop` follows. */
  drain(): Promise<void>;
}
