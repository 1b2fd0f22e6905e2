/**
 * How long the server waits for a sign of life of a task that a worker has. Workers give one every third of their own
 * setting, so the wait may be no shorter than the longest setting of a living worker that serves the activity: it is
 * lowered only when the last worker with a longer one has left.
 */
import type { WorkerInfo } from "../../../schemas/index.ts";

/** Of a worker that does not say: what it is by default. */
const unsaidMs = 10_000;

export function ackWaitFor(
  activity: { queue: string; name: string },
  ownMs: number,
  others: readonly Pick<WorkerInfo, "activities" | "ackWaitMs">[],
): number {
  const serves = ({ activities }: Pick<WorkerInfo, "activities">) =>
    activities.some(({ queue, name }) => queue === activity.queue && name === activity.name);
  return Math.max(ownMs, ...others.filter(serves).map(({ ackWaitMs }) => ackWaitMs ?? unsaidMs));
}
