import type { ActivityReport } from "../../schemas/index.ts";

/** One attempt at one task of an instance. */
export interface Attempt {
  readonly instanceId: string;
  readonly execution: number;
  readonly of: number;
  readonly attempt: number;
}

/**
 * The message id of a report. With the epoch: the same attempt may be made again under the next one, and that report is
 * another. Whoever tells the end of an attempt uses it, worker or watcher: of two the server stores one.
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
