/**
 * One partition held by this orchestrator: its consumer feeds the partition's instances until the lease is
 * given up or lost.
 */
import type { ConsumeOptions, Consumption, Delivery } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Lease, Leases } from "../../../shared/leases/index.ts";
import { once, sleep } from "../../../shared/runtime/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { LanePartition } from "../lane/lane.ts";
import type { Mail } from "../mail.ts";
import type { Question } from "../queries/queries.ts";
import { type InstanceCache, PartitionInstances } from "./partition-instances.ts";

interface PartitionOptions {
  partition: number;
  lease: Lease;
  leases: Leases;
  cache: InstanceCache;
  alwaysReplay: boolean;
  maxMessages: number;
  maxUnacknowledged: number;
  /**
   * Called when the consumer cannot be restored: the partition is then given up, because a partition held and
   * not served is worse than one not held.
   */
  onBroken(partition: Partition, error: unknown): void;
}

/**
 * Long, because messages wait in memory while a turn runs. Redelivery is for lost deliveries only; a
 * take-over does not wait for it.
 */
const ackWaitMs = 60_000;

export class Partition {
  readonly number: number;
  readonly lease: Lease;
  readonly #deps: OrchestratorDeps;
  readonly #options: PartitionOptions;
  readonly #instances: PartitionInstances;
  readonly #ended = new AbortController();
  #consumption: Consumption | undefined;
  /**
   * Openings run one after another: of two at once, one would stay open unnoticed after the partition was
   * given up.
   */
  #opening: Promise<void> = Promise.resolve();

  constructor(deps: OrchestratorDeps, options: PartitionOptions) {
    this.number = options.partition;
    this.lease = options.lease;
    this.#deps = deps;
    this.#options = options;
    this.#instances = new PartitionInstances(deps, options.cache, {
      alwaysReplay: options.alwaysReplay,
      // Unacknowledged messages take room in the feed: half of it is left for everything else.
      laneSeats: Math.floor(options.maxMessages / 2),
      isHeld: () => options.leases.isHeld(options.lease),
    });
  }

  get instances(): number {
    return this.#instances.size;
  }

  find(instanceId: string): LanePartition | undefined {
    return this.isHeld ? this.#instances.find(instanceId) : undefined;
  }

  get isHeld(): boolean {
    return this.#options.leases.isHeld(this.lease);
  }

  ask(instanceId: string, question: Question): void {
    this.#instances.ask(instanceId, question);
  }

  /** Takes a message that another orchestrator sent directly; the instance need not be in memory. */
  put(instanceId: string, mail: Mail): void {
    this.#instances.put(instanceId, mail);
  }

  /** Resolves when the first messages may arrive. */
  start(): Promise<void> {
    return this.refresh();
  }

  /**
   * Deletes the consumer and creates it anew: the server then delivers everything unacknowledged at once and
   * in order (T7), and the previous owner's feed ends.
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
          // The consumer is made anew at every take-over, and unacknowledged messages are in the stream: it
          // needs no file.
          volatile: true,
        });
        const consumption = await bus.consume(stream, name, {
          maxMessages: this.#options.maxMessages,
          ...this.#inOrder(),
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

  /**
   * A gap means that a delivery was lost, for example with a connection: later messages would overtake it
   * (T7). The last delivery leaves no gap, so an idle server's count is compared too: it would come again only
   * after the acknowledgement wait.
   */
  #inOrder(): Pick<ConsumeOptions, "onMessage" | "onIdle"> {
    let next = 1;
    const again = () => {
      if (next < 0) return;
      next = -1;
      this.#again();
    };
    return {
      onMessage: (delivery) => {
        if (delivery.order !== next) return again();
        next++;
        this.#receive(delivery);
      },
      onIdle: (deliveries) => {
        if (deliveries >= next) again();
      },
    };
  }

  #receive(delivery: Delivery): void {
    this.#deps.time.saw(delivery.at);
    // This check only saves a wasted turn; the protection is the fence of the append (T4).
    if (this.#options.leases.isHeld(this.lease)) this.#instances.receive(delivery);
  }

  #again(instead?: Consumption): void {
    this.refresh(instead).catch((error: unknown) => this.#options.onBroken(this, error));
  }

  /**
   * Makes the server deliver everything unacknowledged again, at once and in order. `instead`: only if this
   * consumption is still the latest one.
   */
  refresh(instead?: Consumption): Promise<void> {
    this.#opening = this.#opening.then(() => this.#refresh(instead));
    return this.#opening;
  }

  async #refresh(instead: Consumption | undefined): Promise<void> {
    const { signal } = this.#ended;
    if (signal.aborted || (instead && instead !== this.#consumption)) return;
    await this.#consumption?.stop();
    // The new owner has made the consumer anew: it must not be deleted here.
    if (signal.aborted || !this.#options.leases.isHeld(this.lease)) return;
    await this.#open();
  }

  stop = once(async () => {
    this.#ended.abort();
    // Wait, because a consumption opened after this would never be stopped.
    await this.#opening.catch(() => undefined);
    await this.#consumption?.stop();
    await this.#instances.close();
  });
}
