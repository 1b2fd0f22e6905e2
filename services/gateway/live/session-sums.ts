/** The figures that `describe()` shows of a session, summed up by type for metrics: no ids. Pure. */
import { sessionPhases } from "../../../schemas/index.ts";
import type { SessionRow } from "./rows.ts";

/** The open sessions of one type. Figures of holders are as they last reported them. */
interface SessionSums {
  /** Age of the oldest session. */
  oldestMs: number;
  /** The longest time that a session has gone without a call. */
  idleMs: number;
  running: number;
  queued: number;
  /** Memory of hosts that are processes of their own. */
  hostBytes: number;
  blobs: number;
  blobBytes: number;
  /** How often `init` made states, the rebuild activity was begun, and workers came to hold them. */
  inits: number;
  rebuilds: number;
  owners: number;
}

export function sessionSums(rows: readonly SessionRow[], now: number): Map<string, SessionSums> {
  const sums = new Map<string, SessionSums>();
  for (const { type, phase, openedAt, owners, inits = 0, rebuilds = 0, blobs = [], work } of rows) {
    if (sessionPhases[phase].over) continue;
    const sum = sums.get(type) ?? nothing();
    sums.set(type, sum);
    sum.oldestMs = Math.max(sum.oldestMs, now - openedAt);
    sum.inits += inits;
    sum.rebuilds += rebuilds;
    sum.owners += owners.length;
    sum.blobs += blobs.length;
    for (const { bytes } of blobs) sum.blobBytes += bytes;
    if (!work) continue;
    const { running, queued, since, usedAt = since, hostBytes = 0 } = work;
    if (running === 0) sum.idleMs = Math.max(sum.idleMs, now - usedAt);
    sum.running += running;
    sum.queued += queued;
    sum.hostBytes += hostBytes;
  }
  return sums;
}

const nothing = (): SessionSums => ({
  ...{ oldestMs: 0, idleMs: 0, running: 0, queued: 0, hostBytes: 0 },
  ...{ blobs: 0, blobBytes: 0, inits: 0, rebuilds: 0, owners: 0 },
});
