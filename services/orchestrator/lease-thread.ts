/** Keeps an orchestrator's leases on the thread that also watches its turns. */
import { ThreadedLeaseKeeper, type ThreadSetup } from "../../shared/leases/index.ts";
import { type Runtime, startThread } from "../../shared/runtime/index.ts";
import type { WatchdogSetup } from "./quarantine/runaways.ts";

export interface LeaseThreadSetup extends ThreadSetup {
  watchdog: WatchdogSetup;
}

export interface LeaseThreadOptions {
  id: string;
  /** Full name of the lease bucket. */
  bucket: string;
  runtime: Pick<Runtime, "announce">;
  ttlMs: number;
  watchdog: WatchdogSetup;
}

/**
 * A turn may block the main thread for as long as its limit allows, and reading and writing a value of many
 * megabytes may take longer still. The orchestrator must not lose its partitions over that, because the next
 * owner would face the same value. Code that never returns is ended by the watchdog long before.
 */
export function leasesOnThread({
  id,
  bucket,
  runtime,
  ttlMs,
  watchdog,
}: LeaseThreadOptions): ThreadedLeaseKeeper {
  return new ThreadedLeaseKeeper({
    connection: { ...watchdog.connection, name: `${id}-leases` },
    bucket,
    runtime,
    ttlMs,
    stallLimitMs: Math.max(ttlMs, 6 * watchdog.limitMs),
    spawn: (setup) =>
      startThread(import.meta.url, "watchdog-thread", {
        workerData: { ...setup, watchdog } satisfies LeaseThreadSetup,
        name: "holdfast-lease-thread",
        // The thread needs two connections and a few numbers, so its memory is kept small.
        resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 },
      }),
  });
}
