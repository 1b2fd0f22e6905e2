/** Sessions, owners and watchers without an engine: registers and leases are written by hand, the inbox is read. */
import type { LeaseValue, SessionRecord, SessionReport } from "../../../schemas/index.ts";
import {
  SessionRecord as SessionRecordSchema,
  SessionReport as SessionReportSchema,
} from "../../../schemas/index.ts";
import { defaultWatcherConfig, Watcher, type WatcherConfig } from "../../../services/watcher/index.ts";
import {
  Bucket,
  type Bus,
  bucketStream,
  bucketSubject,
  connectBus,
  decode,
  defaultTopology,
  encode,
  ensureTopology,
  leaseKeys,
  subjects,
} from "../../../shared/bus/index.ts";
import { HistoryStore } from "../../../shared/history/index.ts";
import { isExpiry, type Lease, LeaseKeeper } from "../../../shared/leases/index.ts";
import { type Happening, silent, systemRuntime } from "../../../shared/runtime/index.ts";
import { startNats, type TestNats } from "../nats/nats-server.ts";

type HappeningOf<K extends Happening["kind"]> = Extract<Happening, { kind: K }>;

/** Quick enough for tests, in proportion like the defaults. */
export const quickConfig: WatcherConfig = {
  ...defaultWatcherConfig,
  leaseTtlMs: 1000,
  graceMs: 2000,
  reconcileEveryMs: 60_000,
  sweepEveryMs: 3_600_000,
};

export interface RunningWatcher {
  watcher: Watcher;
  bus: Bus;
  happenings: Happening[];
  /** The next one that is meant, from now or before. */
  heard<K extends Happening["kind"]>(
    kind: K,
    meant?: (h: HappeningOf<K>) => boolean,
  ): Promise<HappeningOf<K>>;
  stop(): Promise<void>;
}

export class WatcherWorld {
  static async start(): Promise<WatcherWorld> {
    const nats = await startNats();
    const bus = await connectBus({ url: nats.url, announce: silent });
    await ensureTopology(bus, subjects(), { ...defaultTopology, historyShards: 2 });
    return new WatcherWorld(nats, bus);
  }

  readonly nats: TestNats;
  readonly bus: Bus;
  readonly names = subjects();
  readonly sessions: Bucket;
  readonly #stoppables: { stop(): Promise<void> }[] = [];

  constructor(nats: TestNats, bus: Bus) {
    this.nats = nats;
    this.bus = bus;
    this.sessions = new Bucket(bus, this.names.bucket("sessions"));
  }

  async stop(): Promise<void> {
    await this.settle();
    await this.bus.close();
    await this.nats.stop();
  }

  /** Ends what the test started. */
  async settle(): Promise<void> {
    await Promise.all(this.#stoppables.splice(0).map((stoppable) => stoppable.stop()));
  }

  /** A holder of leases, with a connection of its own. */
  async owner(ttlMs: number): Promise<LeaseKeeper> {
    const bus = await connectBus({ url: this.nats.url, announce: silent });
    const keeper = new LeaseKeeper({
      bus,
      bucket: this.names.bucket("leases"),
      runtime: systemRuntime(),
      ttlMs,
    });
    this.#stoppables.push({
      async stop() {
        await keeper.stop();
        await bus.close();
      },
    });
    return keeper;
  }

  async register(sessionId: string, fields: Partial<SessionRecord> = {}): Promise<SessionRecord> {
    const now = Date.now();
    const record = SessionRecordSchema.parse({
      v: 1,
      sessionId,
      instanceId: `i-${sessionId}`,
      type: "bare",
      phase: "active",
      attachment: 1,
      requires: { tags: [], resources: {} },
      metadata: {},
      openedAt: now,
      updatedAt: now,
      owners: [],
      ...fields,
    });
    await this.sessions.put(sessionId, encode(record));
    return record;
  }

  async attach(keeper: LeaseKeeper, sessionId: string, attachment = 1): Promise<Lease> {
    const value: LeaseValue = { v: 1, holder: "w1" };
    const outcome = await keeper.claim(leaseKeys.session(sessionId, attachment), value);
    if (outcome.kind !== "granted") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
    return outcome.lease;
  }

  /** All reports to an instance, in order. */
  async told(sessionId: string): Promise<SessionReport[]> {
    const stored = await this.bus.read(this.names.inboxStream, this.names.inboxOf(`i-${sessionId}`));
    return (stored ?? []).map(({ body }) => {
      const report = decode(SessionReportSchema, body);
      if (report.kind === "invalid") throw new Error(report.message);
      return report.value;
    });
  }

  /** Resolves when the server has ended that lease, also if it did before. */
  async expiry(sessionId: string, attachment = 1): Promise<void> {
    const bucket = this.names.bucket("leases");
    let tell: () => void = () => undefined;
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const subject = bucketSubject(bucket, leaseKeys.session(sessionId, attachment));
    const tail = await this.bus.tail(bucketStream(bucket), subject, {
      existing: true,
      onMessage: (message) => isExpiry(message) && tell(),
    });
    await told;
    await tail.stop();
  }

  async watcher(id: string, config: Partial<WatcherConfig> = {}): Promise<RunningWatcher> {
    const happenings: Happening[] = [];
    const listeners = new Set<() => void>();
    const announce = (happening: Happening) => {
      happenings.push(happening);
      for (const listener of listeners) listener();
    };
    const { names } = this;
    const runtime = systemRuntime(announce);
    const bus = await connectBus({ url: this.nats.url, announce });
    const histories = new HistoryStore({
      bus,
      names,
      runtime,
      layout: "per-instance",
      maxOwnStreams: 100,
      shards: 2,
      replicas: 1,
    });
    const watcher = new Watcher({
      id,
      bus,
      names,
      runtime,
      config: { ...quickConfig, ...config },
      histories,
    });
    const stop = async () => {
      await watcher.stop();
      await bus.close();
    };
    this.#stoppables.push({ stop });
    await watcher.start();
    const heard: RunningWatcher["heard"] = (kind, meant = () => true) =>
      new Promise((resolve) => {
        const look = () => {
          const found = happenings.find(
            (h): h is HappeningOf<typeof kind> => h.kind === kind && meant(h as HappeningOf<typeof kind>),
          );
          if (!found) return;
          listeners.delete(look);
          resolve(found);
        };
        listeners.add(look);
        look();
      });
    return { watcher, bus, happenings, heard, stop };
  }
}
