/** Which activities this worker serves, and from which queue each. */
import type { Name } from "../../../../schemas/index.ts";
import { Name as NameSchema } from "../../../../schemas/index.ts";
import type { AnyActivity, App } from "../../../../shared/definitions/index.ts";
import type { WorkerConfig } from "../../config.ts";

export const defaultQueue = "default";

export interface ServedActivity {
  readonly queue: Name;
  readonly name: Name;
  readonly definition: AnyActivity;
}

/**
 * An activity is served from the queue that its definition names. A worker with WORKER_QUEUES set serves
 * every activity from each of those queues and from no other: a caller's `queue` option can route any
 * activity to special workers. An activity that requires tags is served only by workers that have them all.
 */
export function servedActivities(
  app: App,
  { activities, tags }: Pick<WorkerConfig, "activities" | "tags">,
): ServedActivity[] {
  if (activities.slots === 0) return [];
  const served: ServedActivity[] = [];
  for (const definition of app.activities.values()) {
    if (activities.only && !activities.only.includes(definition.name)) continue;
    if (missingTags(definition, tags).length > 0) continue;
    for (const queue of activities.queues ?? [definition.options.queue ?? defaultQueue]) {
      served.push({ queue: NameSchema.parse(queue), name: NameSchema.parse(definition.name), definition });
    }
  }
  return served;
}

export const missingTags = ({ tags }: AnyActivity, has: readonly string[]): string[] =>
  tags.filter((tag) => !has.includes(tag));
