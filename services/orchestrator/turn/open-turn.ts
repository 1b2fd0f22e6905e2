import type { Effect, Turn } from "../../../shared/replay/index.ts";
import type { LaneWork } from "../lane/lane-work.ts";
import type { LocalWork } from "../local/local-work.ts";

/** What the running turn has gathered so far. */
export interface OpenTurn {
  readonly now: number;
  readonly startedAt: number;
  readonly lane: LaneWork;
  readonly locals: () => LocalWork;
  facts: Turn["events"];
  effects: Effect[];
  /** True if the effects of the last commit may be unpublished. */
  owed: boolean;
  /** Tasks that came back from the lane and go out by the queue. */
  readonly recalled: number[];
}
