/** The environment of an instance, and the result of one of its turns. */
import type { EventId, HistoryEvent } from "../../schemas/index.ts";
import type { App } from "../definitions/index.ts";
import type { PlacementFacts } from "./decide/accept-session.ts";
import type { Effect } from "./fold/effects.ts";
import type { PayloadAccess } from "./run/payload-access.ts";
import type { Journal } from "./run/round.ts";

export interface InstanceHost extends Journal {
  readonly app: App;
  readonly payloads: PayloadAccess;
  readonly placement: PlacementFacts;
  /** An execution fails when it has this many events. */
  readonly historyLimit?: number | undefined;
  /** The generations that every living process can read (E1). Undefined: all. */
  readonly generation?: { allows(generation: number): boolean };
}

export interface Turn {
  events: HistoryEvent[];
  effects: Effect[];
  /** True if the code could not be run: the commit holds facts only, which the code sees later. */
  deferred: boolean;
  /** True for the first commit of an execution. */
  startsExecution: boolean;
  /**
   * First events of further runs of the code, if there were any (services/orchestrator/local/run-ahead.ts).
   */
  rounds?: EventId[];
}
