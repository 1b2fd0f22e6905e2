import type { InstanceSummary, SessionRecord } from "../../schemas/index.ts";
import type { Bus, Payloads, ServerClock, Subjects, TypedBucket } from "../../shared/bus/index.ts";
import type { Capabilities } from "../../shared/capabilities/index.ts";
import type { App } from "../../shared/definitions/index.ts";
import type { Generation } from "../../shared/fleet/index.ts";
import type { HistoryStore } from "../../shared/history/index.ts";
import type { InstanceHost } from "../../shared/replay/index.ts";
import type { Runtime } from "../../shared/runtime/index.ts";
import type { LiveWorkers } from "../../shared/sessions/index.ts";
import type { FaultPoints } from "./fault-points.ts";
import type { Keepers } from "./flow/keeper-messages.ts";

/**
 * Parts that every component of an orchestrator receives: parts of the library, none of the orchestrator's
 * own.
 */
export interface EngineDeps {
  readonly id: string;
  readonly bus: Bus;
  readonly names: Subjects;
  /** `runtime.clock` is the server's clock. */
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
  /** Which generation of events and messages may be written now (E1). */
  readonly generation: Pick<Generation, "allows">;
  /** Made for workers, and asked for with their reports (C1). */
  readonly capabilities: Capabilities;
  /** Called when work was sent to workers, so that dead ones are noticed sooner. */
  readonly workSent: () => void;
  /** The way to the keepers of flow control without durable messages. */
  readonly keepers: Keepers;
  readonly faultPoints: FaultPoints;
}
