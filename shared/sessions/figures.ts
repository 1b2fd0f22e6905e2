/** Figures of a session for people, from its record and its holder's last report. Pure. */
import type { SessionRecord, WorkerInfo } from "../../schemas/index.ts";

/**
 * A session in numbers. The holder's figures are a few seconds old, and undefined while no worker holds it.
 */
export interface SessionFigures {
  /** Time since the session was opened; until its end if it has ended. */
  ageMs: number;
  /** Time since a call last began or ended; 0 while one runs. Undefined: not used since it was claimed. */
  idleMs?: number;
  /** Number of calls since it was claimed. */
  calls?: number;
  errors?: number;
  running?: number;
  queued?: number;
  /** Memory of its host; of the worker if the host is the worker's own process. */
  memory?: { of: "host" | "worker"; bytes: number };
  /** Number of models that its code loaded since it was claimed. */
  modelLoads?: number;
  /** How often `init` made its state. */
  inits: number;
  /** How often its rebuild activity was begun. */
  rebuilds: number;
  /** Number and total size of the blobs that its code stored. */
  blobs: number;
  blobBytes: number;
  /** The workers that have held it, latest last. */
  owners: SessionRecord["owners"];
}

export function figuresOf(
  record: SessionRecord,
  holder: WorkerInfo | undefined,
  live: WorkerInfo["sessions"][number] | undefined,
  now: number,
): SessionFigures {
  const { phase, openedAt, updatedAt, inits = 0, rebuilds = 0, owners, blobs = [] } = record;
  const until = phase === "closed" || phase === "failed" ? updatedAt : now;
  const kept = {
    ...{ ageMs: Math.max(0, until - openedAt), inits, rebuilds, owners, blobs: blobs.length },
    blobBytes: blobs.reduce((sum, { bytes }) => sum + bytes, 0),
  };
  if (!live || !holder) return kept;
  const { calls, errors, running, queued, usedAt, modelLoads, hostBytes } = live;
  const memory =
    hostBytes === undefined
      ? { of: "worker" as const, bytes: holder.rssBytes }
      : { of: "host" as const, bytes: hostBytes };
  const idleMs = running > 0 ? 0 : usedAt === undefined ? undefined : Math.max(0, now - usedAt);
  return {
    ...kept,
    ...{ calls, running, queued, memory },
    ...(errors !== undefined && { errors }),
    ...(modelLoads !== undefined && { modelLoads }),
    ...(idleMs !== undefined && { idleMs }),
  };
}
