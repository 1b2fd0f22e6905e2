/** One partition held by this orchestrator: its consumer feeds its desk until the lease is given up or lost. */
import type { Consumption, Delivery } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Lease, Leases } from "../../../shared/leases/index.ts";
import { once, sleep } from "../../../shared/runtime/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { LanePartition } from "../lane/lane.ts";
import type { Question } from "../queries/queries.ts";
import { type InstanceCache, PartitionInstances } from "./partition-instances.ts";

export interface PartitionOptions {
  partition: number;
  lease: Lease;
  leases: Leases;
  cache: InstanceCache;
  alwaysReplay: boolean;
  maxMessages: number;
  maxUnacknowledged: number;
  /** It could not be fed any more: held and not served would be worse than not held. */
  onBroken(partition: Partition, error: unknown): void;
}

/** Messages wait in memory while a turn runs; redelivery is for lost deliveries only, take-over does not wait for it. */
const ackWaitMs = 60_000;

export class Partition {
  readonly number: number;
  readonly lease: Lease;
  readonly #deps: OrchestratorDeps;
  readonly #options: PartitionOptions;
  readonly #desk: PartitionInstances;
  readonly #ended = new AbortController();
  #consumption: Consumption | undefined;
  /** Openings follow one another: of two at once, one would feed on unnoticed after the partition was given up. */
  #opening: Promise<void> = Promise.resolve();

  constructor(deps: OrchestratorDeps, options: PartitionOptions) {
    this.number = options.partition;
    this.lease = options.lease;
    this.#deps = deps;
    this.#options = options;
    this.#desk = new PartitionInstances(deps, options.cache, {
      alwaysReplay: options.alwaysReplay,
      // What is kept unacknowledged takes room from the feed: half of it is left for everything else.
      laneSeats: Math.floor(options.maxMessages / 2),
      isHeld: () => options.leases.isHeld(options.lease),
    });
  }

  get instances(): number {
    return this.#desk.size;
  }

  find(instanceId: string): LanePartition | undefined {
    return this.isHeld ? this.#desk.find(instanceId) : undefined;
  }

  get isHeld(): boolean {
    return this.#options.leases.isHeld(this.lease);
  }

  ask(instanceId: string, question: Question): void {
    this.#desk.ask(instanceId, question);
  }

  /** Resolves when the first messages may arrive. */
  start(): Promise<void> {
    return this.refresh();
  }

  /**
   * Deleting and creating the consumer hands out everything unacknowledged at once and in order (T7), and cuts off
   * whoever fed on it before.
   */
  async #open(): Promise<void> {
    const { bus, names, runtime } = this.#deps;
    const stream = names.inboxStream;
    const name = `p${this.number}`;
    for (let attempt = 0; ; attempt++) {
      try {
        await bus.deleteConsumer(stream, name);
        await bus.ensureConsumer({
          stream,
          name,
          filter: names.inboxPartition(this.number),
          ackWaitMs,
          maxAckPending: this.#options.maxUnacknowledged,
          // Made anew whenever it is taken over, and what is unacknowledged is in the stream: nothing is worth a file.
          volatile: true,
        });
        const consumption = await bus.consume(stream, name, {
          maxMessages: this.#options.maxMessages,
          onMessage: this.#inOrder(),
        });
        this.#consumption = consumption;
        void consumption.ended.then((why) => why === "gone" && this.#again(consumption));
        return;
      } catch (error) {
        if (!isFault(error, "transient") || attempt >= 100 || this.#ended.signal.aborted) throw error;
        await sleep(runtime.clock, 100, this.#ended.signal);
      }
    }
  }

  /** A gap means a delivery was lost, for example with a connection: what follows it would overtake it (T7). */
  #inOrder(): (delivery: Delivery) => void {
    let next = 1;
    return (delivery) => {
      if (delivery.order === next) {
        next++;
        this.#receive(delivery);
      } else if (next > 0) {
        next = -1;
        this.#again();
      }
    };
  }

  #receive(delivery: Delivery): void {
    this.#deps.time.saw(delivery.at);
    // A hint that saves a wasted turn; what protects is the fence of the append (T4).
    if (this.#options.leases.isHeld(this.lease)) this.#desk.receive(delivery);
  }

  #again(instead?: Consumption): void {
    this.refresh(instead).catch((error: unknown) => this.#options.onBroken(this, error));
  }

  /** Everything unacknowledged comes again, at once and in order; `instead` of this one, if it is still the latest. */
  refresh(instead?: Consumption): Promise<void> {
    this.#opening = this.#opening.then(() => this.#refresh(instead));
    return this.#opening;
  }

  async #refresh(instead: Consumption | undefined): Promise<void> {
    const { signal } = this.#ended;
    if (signal.aborted || (instead && instead !== this.#consumption)) return;
    await this.#consumption?.stop();
    // Whoever holds it now has made the consumer anew: it is not ours to delete.
    if (signal.aborted || !this.#options.leases.isHeld(this.lease)) return;
    await this.#open();
  }

  stop = once(async () => {
    this.#ended.abort();
    // A consumption opened after this would be nobody's.
    await this.#opening.catch(() => undefined);
    await this.#consumption?.stop();
    await this.#desk.close();
  });
}
