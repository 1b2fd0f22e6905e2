import type { ActivityTask } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/index.ts";
import { taskKey } from "./cancel-notices.ts";
import type { Feed } from "./feed.ts";

/** A task handed out to this worker and not settled yet. */
export interface Held {
  /** One task, one attempt. */
  readonly key: string;
  readonly task: ActivityTask;
  readonly feed: Feed;
  /** The orchestrator whose lane it came by: its result goes there. */
  readonly owner: string | undefined;
  /** The latest, where it was delivered again while we had it. */
  delivery: Delivery;
}

export const attemptKey = (task: Pick<ActivityTask, "instanceId" | "execution" | "of" | "attempt">): string =>
  `${taskKey(task)}.${task.attempt}`;
