import type { Commit } from "../../../schemas/index.ts";
import type { FaultPoint, FaultPoints } from "../../../services/orchestrator/fault-points.ts";
import type { WorkerFaultPoint } from "../../../services/worker/fault-points.ts";
import { encode, ensureTopology, subjects } from "../../bus/index.ts";
import type { App } from "../../definitions/index.ts";
import type { Generation } from "../../fleet/index.ts";
import type { HistoryStore } from "../../history/index.ts";
import { type Happening, type Random, type Runtime, seededRandom } from "../../runtime/index.ts";
import { Client, HoldfastError, type InstanceHandle } from "../../sdk/index.ts";
import { MemberClock } from "../clock/member-clock.ts";
import { SimulatedClock } from "../clock/simulated-clock.ts";
import { type BusFaults, MemoryBroker, type MemoryBus } from "../memory/index.ts";
import { historiesAt, historyShards, orchestratorAt, sessionTtlMs, watcherAt, workerAt } from "./members.ts";

export { sessionTtlMs };

export interface Member {
  readonly id: string;
  readonly bus: MemoryBus;
  kill(): void;
  /** In good order, as after SIGTERM. */
  stop(): Promise<void>;
  /** Wrong by as much as it is told. */
  readonly clock: MemberClock;
  /**
   * As SIGSTOP: none of its timers fires, nothing that arrives is looked at. What it had sent goes through, or is held
   * up with everything else until it wakes.
   */
  pause(sent: "let through" | "held"): void;
  resume(): void;
}

export interface WorldOptions {
  seed: number;
  app: App;
  faults: BusFaults;
  layout?: "per-instance" | "shared";
  alwaysReplay?: boolean;
  /** What everybody writes (E1). Default: what is newest. */
  generation?: Generation;
  /** Copies of each stream; those that are asked may lag where the faults say so. */
  replicas?: number;
  /** Messages of a partition that the server lets be unacknowledged. */
  maxUnacknowledged?: number;
  /** Who lets time pass while something is awaited; the world itself where absent. */
  drive?: <T>(work: Promise<T>) => Promise<T>;
  /** Told of every place where a member could die; `die` kills it there. */
  onPoint?: (point: FaultPoint | WorkerFaultPoint, memberId: string, die: () => void) => void;
  /** Default 4. */
  partitions?: number;
  /** Ended instances are kept for ever. */
  keepEnded?: boolean;
  /** How long the server waits for a worker's acknowledgement; default 2 s. */
  ackWait?: string;
  /** What the orchestrators are told (NATS_REPLICAS), where that is not what the streams have. */
  configuredReplicas?: number;
}

export class World {
  readonly clock = new SimulatedClock();
  readonly random: Random;
  /** The server's. */
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
    this.#options = options;
    this.random = seededRandom(options.seed);
    this.serverClock = new MemberClock(this.clock);
    this.broker = new MemoryBroker({ clock: this.serverClock, seed: options.seed, faults: options.faults });
    this.runtime = {
      clock: this.clock,
      random: this.random,
      announce: (happening) => void this.happenings.push(happening),
    };
    this.outside = this.#connect();
    this.client = new Client({ bus: this.outside, names: this.names, runtime: this.runtime });
  }

  get #generation(): { generation?: Generation } {
    const { generation } = this.#options;
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

  /** With `dieAt` it is killed the n-th time it reaches that point; `clockAheadMs`: its clock is wrong (F30). */
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
        replicas: this.#options.configuredReplicas ?? this.#replicas,
        maxUnacknowledged: this.#options.maxUnacknowledged,
        alwaysReplay: this.#options.alwaysReplay ?? false,
        ...this.#generation,
        faultPoints,
        ...(generation ? { generation } : {}),
      },
    );
    await this.run(orchestrator.start());
    return member(id, bus, clock, () => orchestrator.stop());
  }

  /** As with an orchestrator; `onDeath` hears of it. */
  async worker(
    dieAt?: { point: WorkerFaultPoint; count: number; onDeath: () => void },
    {
      app = this.#options.app,
      ackWait = this.#options.ackWait ?? "2s",
    }: { app?: App; ackWait?: string } = {},
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
        ...this.#generation,
        faultPoints: (workerId) => ({
          reach: (point) => {
            if (point === dieAt?.point && --left === 0) die();
            this.#options.onPoint?.(point, workerId, () => bus.kill());
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
    const { keepEnded } = this.#options;
    const watcher = watcherAt(
      { bus, names, runtime },
      { id, keepEnded, histories: this.#histories(bus), ...this.#generation },
    );
    await this.run(watcher.start());
    return member(id, bus, clock, () => watcher.stop());
  }

  /** How many messages a stream was ever given, what is gone included. */
  everStored(stream: string): number {
    return this.broker.streams.get(stream)?.everStored ?? -1;
  }

  /** Until it is accepted; the same id again changes nothing. */
  async start(name: string, input: unknown, id: string): Promise<InstanceHandle> {
    for (;;) {
      try {
        return await this.run(this.client.start(name, input, { id }));
      } catch (error) {
        if (!(error instanceof HoldfastError) || error.code !== "outcome_unknown") throw error;
      }
    }
  }

  /** Until it is stored, under one message id: what a careful sender does. */
  async signal(instanceId: string, name: string, payload: unknown): Promise<void> {
    const msgId = `signal-${instanceId}-${name}-${String(payload)}`;
    const subject = this.names.signal(instanceId, name);
    const send = () => this.outside.publish(subject, encode(payload), { msgId, timeoutMs: 500 });
    while ((await this.run(send())).kind !== "stored");
  }

  #histories(bus: MemoryBus): HistoryStore {
    return historiesAt({ bus, names: this.names, runtime: this.runtime }, this.#replicas);
  }

  async history(instanceId: string): Promise<Commit[] | undefined> {
    // Whatever copy is asked has all of it then.
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
    // What waited outside is there before the process looks at its clock, or after: here before.
    bus.letThrough("outgoing");
    bus.letThrough("incoming");
    clock.resume();
  },
});
