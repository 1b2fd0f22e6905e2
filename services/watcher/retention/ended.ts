import { type InstanceSummary, terminalStatuses } from "../../../schemas/index.ts";

/** Over for at least so long. */
export const endedBefore = (summary: InstanceSummary, now: number, ms: number): boolean =>
  terminalStatuses.includes(summary.status) && (summary.endedAt ?? summary.updatedAt) + ms <= now;
