/** Tells the follower of an instance that the instance has ended. */
import type { Follower, ScheduleCommand } from "../../../schemas/index.ts";
import type { Subjects } from "../../../shared/bus/index.ts";
import { type Outbox, publishEffect } from "./publish.ts";

export function reportEnd(
  names: Subjects,
  outbox: Outbox,
  { follower, instanceId, status }: { follower: Follower; instanceId: string; status: string },
  msgId: string,
): Promise<unknown> {
  const ended: ScheduleCommand = { kind: "ended", instanceId, status };
  return publishEffect(outbox, names.signal(follower.instanceId, follower.signal), ended, { msgId });
}
