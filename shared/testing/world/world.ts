/** A whole installation in one process: in-memory broker, virtual time, members that tests pause and kill. */
import type { Commit } from "../../../schemas/index.ts";
import type { FaultPoint, FaultPoints } from "../../../services/orchestrator/fault-points.ts";
import type { WatcherConfig } from "../../../services/watcher/config.ts";
import type { WorkerFaultPoint } from "../../../services/worker/fault-points.ts";
import { encode, ensureTopology, subjects } from "../../bus/index.ts";
import type { App } from "../../definitions/index.ts";
import type { Generation } from "../../fleet/index.ts";
import type { HistoryStore } from "../../history/index.ts";
import { replayInOneStretch } from "../../replay/index.ts";
import { type Happening, type Random, type Runtime, seededRandom } from "../../runtime/index.ts";
import { Client, HoldfastError, type InstanceHandle } from "../../sdk/index.ts";
import { type Report, type VerifyOptions, verify } from "../../verify/index.ts";
import { MemberClock } from "../clock/member-clock.ts";
import { SimulatedClock } from "../clock/simulated-clock.ts";
import { type BusFaults, MemoryBroker, type MemoryBus } from "../memory/index.ts";
import {
  historiesAt,
  historyShards,
  type OnPoint,
  orchestratorAt,
  sessionTtlMs,
  watcherAt,
  workerAt,
} from "./members.ts";

export { sessionTtlMs };

export interface Member {
  readonly id: string;
  readonly bus: MemoryBus;
  kill(): void;
  /** Stops in good order, as after SIGTERM. */
  stop(): Promise<void>;
  /** The member's clock, which tests can set wrong. */
  readonly clock: MemberClock;
  /**
   * Like SIGSTOP: none of its timers fires, and incoming messages wait. Messages it had sent go through, or
   * are held with everything else until it wakes.
   */
  pause(sent: "let through" | "held"): void;
  resume(): void;
}

interface WorldOptions {
  seed: number;
  /** Epoch milliseconds at which virtual time begins. */
  startsAt?: number | undefined;
  app: App;
  faults: BusFaults;
  layout?: "per-instance" | "shared";
  /** How long an instance runs before it gets a stream of its own; default 1 s. */
  ownAfterMs?: number | undefined;
  alwaysReplay?: boolean;
  /** The generation every member writes, or the nth (E1). Default: the newest. */
  generation?: Generation | ((member: number) => Generation);
  /** Replicas of each stream; with the matching fault, replicas lag. */
  replicas?: number;
  /** Limit of unacknowledged messages per partition. */
  maxUnacknowledged?: number;
  /** Lets time pass while a promise is awaited; undefined: the world does. */
  drive?: <T>(work: Promise<T>) => Promise<T>;
  onPoint?: OnPoint;
  /** Default 4. */
  partitions?: number;
  /** Idle instances an orchestrator keeps in memory; default 1000. */
  cacheSize?: number;
  /** Ended instances are never removed. */
  keepEnded?: boolean;
  watcherSettings?: Partial<WatcherConfig>;
  /** The server remembers message ids at most this long; undefined: the window of each stream. */
  dedupeMs?: number;
  /** How often an orchestrator asks the next one whether it lives; undefined: as in production. */
  deathProbeMs?: number;
  /** How long the server waits for a worker's acknowledgement; default 2 s. */
  ackWait?: string;
  /** NATS_REPLICAS of the orchestrators, if it differs from the streams' replicas. */
  configuredReplicas?: number;
}

export class World {
  readonly clock: SimulatedClock;
  readonly random: Random;
  /** The server's clock. */
  readonly serverClock: MemberClock;
  readonly broker: MemoryBroker;
  readonly names = subjects();
  readonly happenings: Happening[] = [];
  readonly runtime: Runtime;
  readonly outside: MemoryBus;
  readonly client: Client;
  readonly #options: WorldOptions;
  #members = 0;

  constructor(options: WorldOptions) {
    replayInOneStretch();
    this.#options = options;
    this.clock = new SimulatedClock(options.startsAt);
    this.random = seededRandom(options.seed);
    this.serverClock = new MemberClock(this.clock);
    const { seed, faults, dedupeMs } = options;
    this.broker = new MemoryBroker({ clock: this.serverClock, seed, faults, dedupeMs });
    this.runtime = {
      clock: this.clock,
      random: this.random,
      announce: (happening) => void this.happenings.push(happening),
    };
    this.outside = this.#connect();
    this.client = new Client({ bus: this.outside, names: this.names, runtime: this.runtime });
  }

  /** The generation of the member that is being made. */
  get #generation(): { generation?: Generation } {
    const { generation } = this.#options;
    if (typeof generation === "function") return { generation: generation(this.#members) };
    return generation ? { generation } : {};
  }

  get #partitions(): number {
    return this.#options.partitions ?? 4;
  }

  get #replicas(): number {
    return this.#options.replicas ?? 1;
  }

  #connect(): MemoryBus {
    return this.broker.connect({ replicas: this.#replicas });
  }

  /** Awaits while virtual time passes. */
  run<T>(work: Promise<T>, limitMs?: number): Promise<T> {
    return this.#options.drive?.(work) ?? this.clock.run(work, limitMs);
  }

  async prepare(): Promise<void> {
    await this.run(
      ensureTopology(this.outside, this.names, {
        partitions: this.#partitions,
        historyShards,
        replicas: this.#replicas,
      }),
    );
  }

  count(kind: Happening["kind"]): number {
    return this.happenings.filter((happening) => happening.kind === kind).length;
  }

  /**
   * With `dieAt` the orchestrator is killed the n-th time it reaches that point; `clockAheadMs`: its clock is
   * wrong (F30).
   */
  async orchestrator(
    dieAt?: { point: FaultPoint; count: number },
    {
      app = this.#options.app,
      clockAheadMs = 0,
      generation,
    }: { app?: App; clockAheadMs?: number; generation?: Generation } = {},
  ): Promise<Member> {
    const bus = this.#connect();
    const clock = new MemberClock(this.clock, clockAheadMs);
    const runtime: Runtime = { ...this.runtime, clock };
    const id = `orchestrator-${++this.#members}`;
    let left = dieAt?.count ?? 0;
    const { onPoint } = this.#options;
    const faultPoints: FaultPoints = {
      reach: (point) => {
        if (point === dieAt?.point && --left === 0) bus.kill();
        onPoint?.(point, id, () => bus.kill());
      },
    };
    const orchestrator = orchestratorAt(
      { bus, names: this.names, runtime },
      {
        id,
        app,
        partitions: this.#partitions,
        layout: this.#options.layout ?? "per-instance",
        ownAfterMs: this.#options.ownAfterMs,
        replicas: this.#options.configuredReplicas ?? this.#replicas,
        maxUnacknowledged: this.#options.maxUnacknowledged,
        cacheSize: this.#options.cacheSize,
        deathProbeMs: this.#options.deathProbeMs,
        alwaysReplay: this.#options.alwaysReplay ?? false,
        ...this.#generation,
        faultPoints,
        ...(generation ? { generation } : {}),
      },
    );
    await this.run(orchestrator.start());
    return member(id, bus, clock, () => orchestrator.stop());
  }

  /** Options as for an orchestrator; `onDeath` is called when the worker dies. */
  async worker(
    dieAt?: { point: WorkerFaultPoint; count: number; onDeath: () => void },
    {
      app = this.#options.app,
      ackWait = this.#options.ackWait ?? "2s",
      settings,
    }: { app?: App; ackWait?: string; settings?: Record<string, string> } = {},
  ): Promise<Member> {
    const bus = this.#connect();
    let left = dieAt?.count ?? 0;
    const die = () => {
      bus.kill();
      dieAt?.onDeath();
    };
    const { names } = this;
    const clock = new MemberClock(this.clock);
    const runtime: Runtime = { ...this.runtime, clock };
    const worker = workerAt(
      { bus, names, runtime },
      {
        app,
        host: `host-${++this.#members}`,
        ackWait,
        settings,
        ...this.#generation,
        faultPoints: (workerId) => ({
          reach: (point, session) => {
            if (point === dieAt?.point && --left === 0) die();
            this.#options.onPoint?.(point, workerId, () => bus.kill(), session);
          },
        }),
      },
    );
    await this.run(worker.start());
    return member(worker.id, bus, clock, () => worker.stop());
  }

  async watcher(): Promise<Member> {
    const bus = this.#connect();
    const { names } = this;
    const clock = new MemberClock(this.clock);
    const runtime: Runtime = { ...this.runtime, clock };
    const id = `watcher-${++this.#members}`;
    const { keepEnded, watcherSettings: settings } = this.#options;
    const watcher = watcherAt(
      { bus, names, runtime },
      { id, keepEnded, settings, histories: this.#histories(bus), ...this.#generation },
    );
    await this.run(watcher.start());
    return member(id, bus, clock, () => watcher.stop());
  }

  /** Number of messages ever stored in a stream, including those removed. */
  everStored(stream: string): number {
    return this.broker.streams.get(stream)?.everStored ?? -1;
  }

  /** Repeats until the start is accepted; starting the same id again changes nothing. */
  async start(name: string, input: unknown, id: string): Promise<InstanceHandle> {
    for (;;) {
      try {
        return await this.run(this.client.start(name, input, { id }));
      } catch (error) {
        if (!(error instanceof HoldfastError) || error.code !== "outcome_unknown") throw error;
      }
    }
  }

  /** Repeats until the signal is stored, under one message id, as a careful sender does. */
  async signal(instanceId: string, name: string, payload: unknown): Promise<void> {
    const msgId = `signal-${instanceId}-${name}-${String(payload)}`;
    const subject = this.names.signal(instanceId, name);
    const send = () => this.outside.publish(subject, encode(payload), { msgId, timeoutMs: 500 });
    while ((await this.run(send())).kind !== "stored");
  }

  #histories(bus: MemoryBus): HistoryStore {
    return historiesAt({ bus, names: this.names, runtime: this.runtime }, this.#replicas);
  }

  /** The checker's report on everything in the streams. */
  async verify(options: Omit<VerifyOptions, "bus" | "names" | "clock"> = {}): Promise<Report> {
    return this.run(verify({ ...options, bus: this.outside, names: this.names, clock: this.clock }), 600_000);
  }

  async history(instanceId: string): Promise<Commit[] | undefined> {
    // Afterwards every replica has all messages.
    if (this.#replicas > 1) await this.clock.advance(this.broker.fate.faults.replicaLagMs[1]);
    return this.run(this.#histories(this.outside).readAll(instanceId));
  }
}

const member = (id: string, bus: MemoryBus, clock: MemberClock, stop: () => Promise<void>): Member => ({
  id,
  bus,
  clock,
  stop,
  kill: () => bus.kill(),
  pause: (sent) => {
    clock.pause();
    bus.hold("incoming");
    if (sent === "held") bus.hold("outgoing");
  },
  resume: () => {
    // Messages that waited outside arrive either before or after the process reads its clock: here before.
    bus.letThrough("outgoing");
    bus.letThrough("incoming");
    clock.resume();
  },
});
