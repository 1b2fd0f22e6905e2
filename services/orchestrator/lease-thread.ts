/** Keeps an orchestrator's leases on the thread that also watches its turns. */
import type { Worker } from "node:worker_threads";
import { ThreadedLeaseKeeper, type ThreadSetup } from "../../shared/leases/index.ts";
import { type Runtime, startEarly, startThread } from "../../shared/runtime/index.ts";
import type { WatchdogSetup } from "./quarantine/runaways.ts";

export interface LeaseThreadSetup extends ThreadSetup {
  watchdog: WatchdogSetup;
}

type LeaseThread = (setup: LeaseThreadSetup) => Worker;

interface LeaseThreadOptions {
  thread: LeaseThread;
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
  thread,
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
    spawn: (setup) => thread({ ...setup, watchdog }),
  });
}

/** Starts the thread before its setup is known. */
export const leaseThread = (): LeaseThread =>
  startEarly((options) =>
    startThread(import.meta.url, "watchdog-thread", {
      ...options,
      name: "holdfast-lease-thread",
      // The thread needs two connections and a few numbers, so its memory is kept small.
      resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 },
    }),
  );
