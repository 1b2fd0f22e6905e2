import type { ActivityReport } from "../../../schemas/index.ts";

/** One attempt at one task of an instance. */
export interface Attempt {
  readonly instanceId: string;
  readonly execution: number;
  readonly of: number;
  readonly attempt: number;
}

/**
 * The message id of a report. It contains the epoch: the same attempt may run again under the next epoch, and
 * its report is another message. Worker and watcher use the same id for the end of an attempt, so the server
 * stores one of them.
 */
export function activityReportId(
  task: Attempt,
  kind: ActivityReport["result"]["kind"],
  epoch?: number,
): string {
  const { instanceId, execution, of, attempt } = task;
  const right = epoch === undefined ? "" : `-e${epoch}`;
  return `act-${instanceId}-${execution}-${of}-${attempt}${right}-${kind}`;
}

/** The prefix of a signal's message id; the id that follows is the client's own or its caller's. */
export const madeSignalId = (instanceId: string): string => `signal-${instanceId}-`;

/** The prefix of an update's id if the caller gave none. */
export const madeUpdateId = "auto-";
