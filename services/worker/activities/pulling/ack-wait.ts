/**
 * How long the server waits for a sign of life for a task that a worker holds. A worker sends one every third
 * of its own setting, so the wait must be no shorter than the longest setting among the living workers that
 * serve the activity. It is lowered only when the last worker with a longer setting has left.
 */
import type { WorkerInfo } from "../../../../schemas/index.ts";

/** The default setting, for a worker whose entry does not state one. */
const defaultMs = 10_000;

export function ackWaitFor(
  activity: { queue: string; name: string },
  ownMs: number,
  others: readonly Pick<WorkerInfo, "activities" | "ackWaitMs">[],
): number {
  const serves = ({ activities }: Pick<WorkerInfo, "activities">) =>
    activities.some(({ queue, name }) => queue === activity.queue && name === activity.name);
  return Math.max(ownMs, ...others.filter(serves).map(({ ackWaitMs }) => ackWaitMs ?? defaultMs));
}
