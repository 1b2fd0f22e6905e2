/**
 * The session side with its lease keeper. Leases are renewed on a thread of their own (S8), which stops after
 * the sessions.
 */
import type { Worker as Thread } from "node:worker_threads";
import { ThreadedLeaseKeeper, type ThreadSetup } from "../../shared/leases/index.ts";
import { once } from "../../shared/runtime/index.ts";
import type { ConnectionSettings } from "../run-service.ts";
import type { SessionPart, WorkerDeps } from "./deps.ts";
import { SessionService } from "./sessions/index.ts";
import type { Will } from "./supervise/last-will.ts";

/** Gives the thread that renews leases its setup. */
export type LeaseThread = (setup: ThreadSetup) => Thread;

export function sessionSide(
  deps: WorkerDeps,
  connection: ConnectionSettings,
  appPath: string | undefined,
  leaseThread: LeaseThread,
  will?: Will,
): SessionPart {
  const leases = new ThreadedLeaseKeeper({
    bus: deps.bus,
    connection: { ...connection, name: `${deps.identity.workerId}-leases` },
    bucket: deps.names.bucket("leases"),
    runtime: deps.runtime,
    ttlMs: deps.config.sessions.leaseTtlMs,
    prefix: deps.names.prefix,
    spawn: leaseThread,
  });
  // The thread connects before the rest of the worker; `start` waits for it.
  leases.start().catch(() => undefined);
  const sessions = new SessionService({
    ...deps,
    leases,
    will,
    ...(appPath === undefined ? {} : { appPath }),
  });
  return {
    start: once(async () => {
      await leases.start();
      await sessions.start();
    }),
    load: () => sessions.load(),
    drain: () => sessions.drain(),
    stop: once(async () => {
      await sessions.stop();
      await leases.stop();
    }),
  };
}
