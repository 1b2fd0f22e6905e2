/** Points in a worker's code where a crash must do no harm; tests stop the process there. */
import type { FaultPoints as Points } from "../fault-points.ts";

export const workerFaultPoints = [
  "claim.before_lease",
  "claim.after_lease",
  "init.before_told",
  "init.after_told",
  "call.before_report",
  "call.after_report",
  "activity.before_report",
  "activity.after_report",
  "close.before_release",
  "close.after_release",
] as const;
export type WorkerFaultPoint = (typeof workerFaultPoints)[number];

export type WorkerFaultPoints = Points<WorkerFaultPoint>;
