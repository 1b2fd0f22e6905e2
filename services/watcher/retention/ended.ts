import { type InstanceSummary, terminalStatuses } from "../../../schemas/index.ts";

/** True if the instance ended at least `ms` ago. */
export const endedBefore = (summary: InstanceSummary, now: number, ms: number): boolean =>
  terminalStatuses.includes(summary.status) && (summary.endedAt ?? summary.updatedAt) + ms <= now;

/** True if the instance got signals but no start for at least `ms`: it may never be started. */
export const unstartedSince = (summary: InstanceSummary, now: number, ms: number): boolean =>
  summary.status === "pending" && summary.updatedAt + ms <= now;
