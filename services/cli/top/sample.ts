/** One reading of a busy installation, as data. */
import type { InstanceStatus, ServiceInfo, SessionRecord, WorkerInfo } from "../../../schemas/index.ts";

export interface Queue {
  name: string;
  /** Tasks not yet handed to a worker. */
  waiting: number;
  /** Tasks handed to a worker and not yet answered. */
  running: number;
}

interface TopSession {
  sessionId: string;
  type: string;
  phase: SessionRecord["phase"];
  instanceId: string;
  workerId?: string | undefined;
  epoch?: number | undefined;
  calls?: number | undefined;
  running?: number | undefined;
  queued?: number | undefined;
  /** When the session's phase began. */
  since: number;
}

interface TopWorker {
  workerId: string;
  host: string;
  draining: boolean;
  activities: { used: number; max: number };
  sessions: { used: number; max: number };
  calls: { used: number; max: number };
  rssBytes: number;
  eventLoopDelayMs: number;
  seenAt: number;
}

export interface Sample {
  at: number;
  instances: Record<InstanceStatus, number>;
  /** Over the last ten seconds, or over the time watched if it is shorter. */
  perSecond: { started: number; completed: number; failed: number };
  lostPerMinute: number;
  services: Record<ServiceInfo["service"], number>;
  queues: Queue[];
  deadLetters: number;
  workers: TopWorker[];
  /** Sessions that are not closed. */
  sessions: TopSession[];
}

export const topWorker = (worker: WorkerInfo): TopWorker => ({
  workerId: worker.workerId,
  host: worker.host,
  draining: worker.draining,
  ...worker.slots,
  rssBytes: worker.rssBytes,
  eventLoopDelayMs: worker.eventLoopDelayMs,
  seenAt: worker.seenAt,
});

const over: ReadonlySet<SessionRecord["phase"]> = new Set(["closed", "failed", "lost"]);

/** Busiest first. */
export function topSessions(records: Iterable<SessionRecord>, workers: readonly WorkerInfo[]): TopSession[] {
  const held = new Map(workers.flatMap((worker) => worker.sessions.map((live) => [live.sessionId, live])));
  const rows: TopSession[] = [];
  for (const { sessionId, type, phase, instanceId, workerId, epoch, updatedAt } of records) {
    if (over.has(phase)) continue;
    const live = held.get(sessionId);
    const known = live?.epoch === epoch ? live : undefined;
    rows.push({
      ...{ sessionId, type, phase, instanceId, workerId, epoch, since: known?.since ?? updatedAt },
      ...(known && { calls: known.calls, running: known.running, queued: known.queued }),
    });
  }
  const load = ({ running = 0, queued = 0 }: TopSession) => running + queued;
  return rows.sort((a, b) => load(b) - load(a) || b.since - a.since);
}
