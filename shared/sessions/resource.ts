/**
 * Names of resources, to which a session's token leads back. By default each worker has its own, named like
 * its node; for workers of 0.1.0 it was the machine, shared by all its workers.
 */
import type { WorkerInfo } from "../../schemas/index.ts";

/** The machine as a resource name. Host names have dots; tokens of subjects do not. */
export const resourceOfHost = (host: string): string =>
  host.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 128) || "host";

/** A token of 0.1.0 may name the machine: any worker on it fits. */
export const isOnResource = (worker: Pick<WorkerInfo, "resourceId" | "host">, resourceId: string): boolean =>
  worker.resourceId === resourceId || resourceOfHost(worker.host) === resourceId;
