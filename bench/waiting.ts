/** Waits for facts about instances by polling. */
import { setTimeout as delay } from "node:timers/promises";
import type { Client, InstanceHandle, InstanceView } from "../shared/sdk/index.ts";

const firstLookMs = 2;
const longestPauseMs = 50;

/** Resolves when the instance's status satisfies the check; rejects if the instance ends before. */
export async function until(
  client: Client,
  instanceId: string,
  check: (view: InstanceView) => boolean,
): Promise<InstanceView> {
  for (let pauseMs = firstLookMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    const view = await client.status(instanceId);
    if (check(view)) return view;
    if (view.endedAt !== undefined) {
      throw new Error(`${instanceId} ended (${view.status}): ${view.error?.message ?? "too soon"}`);
    }
    await delay(pauseMs);
  }
}

export const untilRunning = (client: Client, instanceId: string): Promise<InstanceView> =>
  until(client, instanceId, (view) => view.status === "running");

/** Resolves when the instance's code has set this status. */
export const untilStatus = (client: Client, handle: InstanceHandle, status: string): Promise<InstanceView> =>
  until(client, handle.instanceId, (view) => view.customStatus === status);
