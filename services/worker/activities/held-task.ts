import { type ActivityTask, laneBeforeHeader } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/index.ts";
import type { LanePath } from "../lane/index.ts";
import { taskKey } from "./cancel-notices.ts";
import type { Feed } from "./feed.ts";

/** A task handed out to this worker and not settled yet. */
export interface Held {
  /** One task, one attempt. */
  readonly key: string;
  readonly task: ActivityTask;
  readonly feed: Feed;
  /** Present where it came by the lane: its result goes back there. */
  readonly lane: LanePath | undefined;
  /** The latest, where it was delivered again while we had it. */
  delivery: Delivery;
}

/** How often it may have been begun. */
export const runsBefore = ({ deliveries, headers }: Pick<Delivery, "deliveries" | "headers">): number =>
  deliveries - 1 + (headers[laneBeforeHeader] === undefined ? 0 : 1);

export const attemptKey = (task: Pick<ActivityTask, "instanceId" | "execution" | "of" | "attempt">): string =>
  `${taskKey(task)}.${task.attempt}`;
