/**
 * A worker's will: the data with which the process that sees the worker die reports its sessions lost at once
 * (D1). The worker sends it to its supervisor, or else to each of its process hosts.
 */
import type { DeadHolder, LeaseConnection } from "../../../shared/leases/index.ts";

export interface Will {
  readonly connection: LeaseConnection;
  readonly dead: DeadHolder;
}

export interface WillMessage {
  readonly kind: "will";
  readonly will: Will;
}

/** Both ends belong to one build, so the kind is enough. */
export const isWill = (message: unknown): message is WillMessage =>
  typeof message === "object" && message !== null && "kind" in message && message.kind === "will";

/** NATS may be away: then the leases expire, as they do without a will. */
const mostMs = 5_000;

/** Returns how many sessions were reported as lost; undefined if that is not known. */
export async function executeWill({ connection, dead }: Will, detail: string): Promise<number | undefined> {
  // Loaded only now: a process that waits for a death should cost next to nothing.
  const { releaseDead } = await import("../../../shared/leases/index.ts");
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), mostMs).unref());
  return Promise.race([releaseDead(connection, dead, detail), late]).catch(() => undefined);
}
