/** Places in a turn where a crash must do no harm. */
import type { FaultPoints as Points } from "../fault-points.ts";

export const orchestratorFaultPoints = [
  "turn.before_append",
  "turn.after_append",
  "turn.after_effects",
  "effects.half_published",
  "continue.between_executions",
] as const;
export type FaultPoint = (typeof orchestratorFaultPoints)[number];

export type FaultPoints = Points<FaultPoint>;

export const noFaults: FaultPoints = { reach: () => undefined };
