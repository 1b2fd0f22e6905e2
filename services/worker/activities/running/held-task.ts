import { type ActivityTask, laneBeforeHeader } from "../../../../schemas/index.ts";
import type { Delivery } from "../../../../shared/bus/index.ts";
import type { LanePath } from "../../lane/index.ts";
import type { Feed } from "../pulling/feed.ts";
import { taskKey } from "./cancel-notices.ts";

/** A task handed out to this worker and not settled yet. */
export interface HeldTask {
  /** Names one attempt of one task. */
  readonly key: string;
  readonly task: ActivityTask;
  readonly feed: Feed;
  /** Set if the task came by the lane: its result goes back there. */
  readonly lane: LanePath | undefined;
  /** The latest delivery, if the task was delivered again meanwhile. */
  delivery: Delivery;
}

/** How often the task may have been begun. */
export const runsBefore = ({ deliveries, headers }: Pick<Delivery, "deliveries" | "headers">): number =>
  deliveries - 1 + (headers[laneBeforeHeader] === undefined ? 0 : 1);

export const attemptKey = (task: Pick<ActivityTask, "instanceId" | "execution" | "of" | "attempt">): string =>
  `${taskKey(task)}.${task.attempt}`;
