/**
 * The identity of this worker (S3): a node id that may outlive the process, plus an incarnation that never
 * does. The worker id joins both in one token, so a restarted worker has another id wherever ids are
 * compared.
 */
import type { WorkerId } from "../../schemas/index.ts";
import { tokenPattern, WorkerId as WorkerIdSchema } from "../../schemas/index.ts";
import { Fault } from "../../shared/errors/index.ts";
import { type Random, token } from "../../shared/runtime/index.ts";
import { resourceOfHost } from "../../shared/sessions/index.ts";

export interface WorkerIdentity {
  readonly workerId: WorkerId;
  readonly nodeId: string;
  readonly incarnation: string;
  readonly host: string;
  readonly pid: number;
  /**
   * The resource that a session token names: a GPU, a disk, by default this node. At most one worker of a
   * host has it at a time.
   */
  readonly resourceId: string;
  readonly buildId: string;
}

interface IdentitySettings {
  nodeId: string | undefined;
  resourceId: string | undefined;
  buildId: string;
}

/** Leaves room for the incarnation inside one token of 128 characters. */
export const longestNodeId = 64;
const incarnationLength = 10;

export function createIdentity(
  settings: IdentitySettings,
  machine: { host: string; pid: number },
  random: Random,
): WorkerIdentity {
  const nodeId = settings.nodeId ?? `${resourceOfHost(machine.host).slice(0, 24)}-${token(random, 4)}`;
  const incarnation = token(random, incarnationLength);
  if (!tokenPattern.test(nodeId) || nodeId.length > longestNodeId) {
    throw new Fault("config", {
      code: "invalid_node_id",
      message: `node id ${JSON.stringify(nodeId)} is not allowed: must be 1 to ${longestNodeId} characters of A-Z a-z 0-9 _ -`,
      hint: "Set WORKER_NODE_ID to such a name, or leave it out.",
    });
  }
  return {
    workerId: WorkerIdSchema.parse(`${nodeId}-${incarnation}`),
    nodeId,
    incarnation,
    host: machine.host,
    pid: machine.pid,
    resourceId: settings.resourceId ?? nodeId,
    buildId: settings.buildId,
  };
}
