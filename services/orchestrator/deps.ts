import type { EngineDeps } from "./engine-deps.ts";
import type { HeldStarts } from "./flow/held-starts.ts";
import type { Lane } from "./lane/lane.ts";
import type { LateSummaries } from "./publishing/late-summaries.ts";
import type { LongLived } from "./publishing/long-lived.ts";
import type { ParkedList } from "./quarantine/parked-list.ts";
import type { Runaways } from "./quarantine/runaways.ts";
import type { TurnSlots } from "./turn-slots.ts";

/** Parts shared by all turns of an orchestrator. */
export interface OrchestratorDeps extends EngineDeps {
  readonly parked: ParkedList;
  readonly runaways: Pick<Runaways, "whyNot">;
  readonly lane: Lane;
  readonly heldStarts: HeldStarts;
  readonly lateSummaries: LateSummaries;
  readonly longLived: LongLived;
  readonly turns: TurnSlots;
}
