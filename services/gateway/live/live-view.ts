/**
 * The present state of the installation, from one live view per bucket. At every interval the changes are
 * applied and sent to all listeners as one batch. It is for people only: the engine decides nothing from it
 * (docs/architecture.md, Read models).
 */

import {
  InstanceSummary,
  LeaseValue,
  ServiceInfo,
  SessionRecord,
  terminalStatuses,
  WorkerInfo,
} from "../../../schemas/index.ts";
import type { Bus, StoredMessage } from "../../../shared/bus/index.ts";
import { headerNames, leaseKeys, parseTtl, type Subjects } from "../../../shared/bus/index.ts";
import type { Runtime, Service, Timer } from "../../../shared/runtime/index.ts";
import { Rates } from "../../../shared/wording/index.ts";
import { BucketTail, type KeyChange, parseBody } from "./bucket-tail.ts";
import { InstanceIndex } from "./instance-index.ts";
import type { InstanceRow, LeaseView, SessionRow, WorkerRow } from "./rows.ts";

export interface LiveBatch {
  instances: InstanceRow[];
  sessions: SessionRow[];
  sessionsGone: string[];
  workers: WorkerRow[];
  workersGone: string[];
}

/** Changes are collected for this long before listeners get them. */
const beatMs = 250;

interface LiveViewOptions {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
}

export class LiveView implements Service {
  readonly instances = new InstanceIndex();
  readonly rates = new Rates();
  readonly #options: LiveViewOptions;
  readonly #tails: Record<
    "instances" | "sessions" | "workers" | "services" | "leases" | "engine",
    BucketTail
  >;
  readonly #sessions = new Map<string, SessionRecord>();
  readonly #workers = new Map<string, WorkerInfo>();
  readonly #services = new Map<string, ServiceInfo>();
  readonly #leases = new Map<string, LeaseView>();
  readonly #partitions = new Set<string>();
  readonly #listeners = new Set<(batch: LiveBatch) => void>();
  #timer: Timer | undefined;
  #running = false;

  constructor(options: LiveViewOptions) {
    this.#options = options;
    const tail = (bucket: Parameters<Subjects["bucket"]>[0]) =>
      new BucketTail(options.bus, options.names.bucket(bucket));
    this.#tails = {
      instances: tail("instances"),
      sessions: tail("sessions"),
      workers: tail("workers"),
      services: tail("services"),
      leases: tail("leases"),
      engine: new BucketTail(options.bus, options.names.engineBucket),
    };
  }

  async start(): Promise<void> {
    await Promise.all(Object.values(this.#tails).map((tail) => tail.start()));
    this.#running = true;
    this.beat();
  }

  async stop(): Promise<void> {
    this.#running = false;
    this.#timer?.cancel();
    await Promise.all(Object.values(this.#tails).map((tail) => tail.stop()));
  }

  onBatch(listener: (batch: LiveBatch) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Applies the changes that have arrived. Public, so that a read after a write sees the write. */
  beat(): void {
    this.#timer?.cancel();
    const batch = this.#fold();
    if (batch) for (const listener of this.#listeners) listener(batch);
    if (this.#running) this.#timer = this.#options.runtime.clock.after(beatMs, () => this.beat());
  }

  sessions(): SessionRow[] {
    return [...this.#sessions.values()].map((record) => this.#sessionRow(record));
  }

  session(sessionId: string): SessionRow | undefined {
    const record = this.#sessions.get(sessionId);
    return record && this.#sessionRow(record);
  }

  workers(): WorkerInfo[] {
    return [...this.#workers.values()];
  }

  worker(workerId: string): WorkerInfo | undefined {
    return this.#workers.get(workerId);
  }

  services(): ServiceInfo[] {
    return [...this.#services.values()];
  }

  /** Partitions whose lease is held. */
  partitionsHeld(): number {
    return this.#partitions.size;
  }

  #fold(): LiveBatch | undefined {
    const changedSessions = new Set<string>();
    this.#foldLeases(this.#tails.leases.popChanges(), changedSessions);
    this.#foldPartitions(this.#tails.engine.popChanges());
    const workers = this.#foldWorkers(this.#tails.workers.popChanges(), changedSessions);
    const sessionsGone = this.#foldSessions(this.#tails.sessions.popChanges(), changedSessions);
    this.#foldServices(this.#tails.services.popChanges());
    const instances = this.#foldInstances(this.#tails.instances.popChanges());
    const sessions = [...changedSessions].flatMap((id) => this.session(id) ?? []);
    const batch: LiveBatch = { instances, sessions, sessionsGone, ...workers };
    return Object.values(batch).some((list) => list.length > 0) ? batch : undefined;
  }

  #foldInstances(changes: KeyChange[]): InstanceRow[] {
    const now = this.#options.runtime.clock.now();
    const rows: InstanceRow[] = [];
    for (const { key, message } of changes) {
      const summary = message && parseBody(InstanceSummary, message.body);
      if (!message) this.instances.delete(key);
      if (!summary) continue;
      const { before, row } = this.instances.set(summary);
      rows.push(row);
      if (row.startedAt !== undefined && before?.startedAt === undefined) {
        this.rates.add("started", row.startedAt, now);
      }
      if (terminalStatuses.includes(row.status) && before?.status !== row.status) {
        this.rates.add(row.status === "completed" ? "completed" : "failed", row.endedAt ?? now, now);
      }
    }
    this.instances.trim();
    return rows;
  }

  #foldSessions(changes: KeyChange[], changed: Set<string>): string[] {
    const now = this.#options.runtime.clock.now();
    const gone: string[] = [];
    for (const { key, message } of changes) {
      const record = message && parseBody(SessionRecord, message.body);
      if (!message && this.#sessions.delete(key)) gone.push(key);
      if (!record) continue;
      const before = this.#sessions.get(record.sessionId);
      if (record.lost && record.lost.at !== before?.lost?.at) this.rates.add("lost", record.lost.at, now);
      this.#sessions.set(record.sessionId, record);
      changed.add(record.sessionId);
    }
    return gone;
  }

  #foldWorkers(
    changes: KeyChange[],
    changedSessions: Set<string>,
  ): Pick<LiveBatch, "workers" | "workersGone"> {
    const workers: WorkerRow[] = [];
    const workersGone: string[] = [];
    for (const { key, message } of changes) {
      const info = message && parseBody(WorkerInfo, message.body);
      if (!message && this.#workers.delete(key)) workersGone.push(key);
      if (!info) continue;
      this.#workers.set(key, info);
      workers.push(workerRow(info));
      for (const { sessionId } of info.sessions) changedSessions.add(sessionId);
    }
    return { workers, workersGone };
  }

  #foldServices(changes: KeyChange[]): void {
    for (const { key, message } of changes) {
      const info = message && parseBody(ServiceInfo, message.body);
      if (!message) this.#services.delete(key);
      else if (info) this.#services.set(key, info);
    }
  }

  #foldLeases(changes: KeyChange[], changedSessions: Set<string>): void {
    for (const { key, message } of changes) {
      const lease = message && leaseView(message);
      if (lease) this.#leases.set(key, lease);
      else this.#leases.delete(key);
      const session = leaseKeys.parseSession(key);
      if (session) changedSessions.add(session.sessionId);
    }
  }

  #foldPartitions(changes: KeyChange[]): void {
    for (const { key, message } of changes) {
      if (!key.startsWith("partition.")) continue;
      if (message && leaseView(message)) this.#partitions.add(key);
      else this.#partitions.delete(key);
    }
  }

  #sessionRow(record: SessionRecord): SessionRow {
    const { v: _, lossCapability: _c, ...row } = record;
    const lease = this.#leases.get(leaseKeys.session(record.sessionId, record.attachment));
    const held = record.workerId && this.#workers.get(record.workerId)?.sessions;
    const work = held ? held.find((entry) => entry.sessionId === record.sessionId) : undefined;
    return {
      ...row,
      ...(lease && { lease }),
      ...(work && { work: workOf(work) }),
    };
  }
}

const workOf = (work: WorkerInfo["sessions"][number]): NonNullable<SessionRow["work"]> => {
  const { calls, queued, running, since, errors, usedAt, modelLoads, hostBytes, snapshot } = work;
  return { calls, queued, running, since, errors, usedAt, modelLoads, hostBytes, snapshot };
};

export function workerRow(info: WorkerInfo): WorkerRow {
  const { v: _, ...row } = info;
  return row;
}

function leaseView(message: StoredMessage): LeaseView | undefined {
  const value = parseBody(LeaseValue, message.body);
  const ttlMs = parseTtl(message.headers[headerNames.ttl]);
  if (!value || ttlMs === undefined) return undefined;
  return { holder: value.holder, renewedAt: message.at, ttlMs };
}
