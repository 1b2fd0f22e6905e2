/** The session side with the keeper of its leases: renewed on a thread of their own (S8), let go after the sessions. */
import { ThreadedLeaseKeeper } from "../../shared/leases/index.ts";
import { once } from "../../shared/runtime/index.ts";
import type { ConnectionSettings } from "../run-service.ts";
import type { SessionPart, WorkerDeps } from "./deps.ts";
import { SessionService } from "./sessions/index.ts";

export function sessionSide(
  deps: WorkerDeps,
  connection: ConnectionSettings,
  appPath: string | undefined,
): SessionPart {
  const leases = new ThreadedLeaseKeeper({
    connection: { ...connection, name: `${deps.identity.workerId}-leases` },
    bucket: deps.names.bucket("leases"),
    runtime: deps.runtime,
    ttlMs: deps.config.sessions.leaseTtlMs,
    prefix: deps.names.prefix,
  });
  const sessions = new SessionService({ ...deps, leases, ...(appPath === undefined ? {} : { appPath }) });
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
