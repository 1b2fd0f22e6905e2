/**
 * Tasks that come again because their worker stopped sending heartbeats.
 *
 * BEAT-2 An attempt that was begun, and whose key has expired since, is reported as silent and not run: its
 *    instance goes on with the next one. For one more timeout it is held back, because an outage of the bus
 *    expires the keys of living workers too, and they write them anew.
 */
import { beatAddress, beatKeys, beatTtlMs, LeaseStore } from "../../../../shared/leases/index.ts";
import { announceFault } from "../../../../shared/runtime/index.ts";
import type { TaskDeps } from "../running/run-task.ts";
import type { Arrival, Expiry } from "./expired.ts";

/** Returns true if the attempt may be silent, so that the server should be asked. */
export const maybeSilent = ({ task, mayHaveBegun }: Arrival): boolean =>
  mayHaveBegun && task.timeouts.heartbeatMs !== undefined;

/** Undefined if the attempt is not silent, or if the server did not answer: then it runs. */
export async function silenceOf(
  { bus, names, runtime }: TaskDeps,
  { task, delivery, mayHaveBegun }: Arrival,
): Promise<Expiry | { timeout: "undecided"; waitMs: number } | undefined> {
  const address = mayHaveBegun ? beatAddress(task) : undefined;
  if (!address) return undefined;
  try {
    const look = await new LeaseStore(bus, names.bucket("leases")).look(beatKeys.of(address));
    // The key is older than the task: an earlier instance with the same id wrote it.
    if (look.kind !== "expired" || look.at < delivery.at) return undefined;
    const info = await bus.streamInfo(names.activitiesStream);
    if (!info) return undefined;
    const waitMs = look.at + beatTtlMs(address.heartbeatMs) - info.seenAt;
    if (waitMs > 0) return { timeout: "undecided", waitMs };
    return { timeout: "heartbeat", ms: address.heartbeatMs, waitedMs: info.seenAt - delivery.at };
  } catch (error) {
    announceFault(runtime, "worker.silent", error, { otherwise: "no_beat" });
    return undefined;
  }
}
