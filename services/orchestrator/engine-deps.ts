import type { InstanceSummary, SessionRecord } from "../../schemas/index.ts";
import type { Bus, Payloads, Subjects, TypedBucket } from "../../shared/bus/index.ts";
import type { App } from "../../shared/definitions/index.ts";
import type { Generation } from "../../shared/fleet/index.ts";
import type { HistoryStore } from "../../shared/history/index.ts";
import type { InstanceHost } from "../../shared/replay/index.ts";
import type { Runtime } from "../../shared/runtime/index.ts";
import type { LiveWorkers } from "../../shared/sessions/live-workers.ts";
import type { FaultPoints } from "./fault-points.ts";
import type { ServerClock } from "./server-clock.ts";

/** What every part of an orchestrator is given: the library's parts, none of the orchestrator's own. */
export interface EngineDeps {
  readonly id: string;
  readonly bus: Bus;
  readonly names: Subjects;
  /** Its clock is the server's. */
  readonly runtime: Runtime;
  readonly time: Pick<ServerClock, "saw">;
  readonly app: App;
  readonly history: HistoryStore;
  readonly payloads: Payloads;
  readonly workers: Pick<LiveWorkers, "workers">;
  readonly host: InstanceHost;
  readonly registers: {
    readonly instances: TypedBucket<InstanceSummary>;
    readonly sessions: TypedBucket<SessionRecord>;
  };
  /** What may be written now (E1). */
  readonly generation: Pick<Generation, "allows">;
  readonly faultPoints: FaultPoints;
}
