/** The instances of one partition that are in memory, bounded by a cache shared over all partitions (T8). */
import { needsNewerVersion } from "../../../schemas/index.ts";
import { buryDelivery, type Delivery } from "../../../shared/bus/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { Holding } from "../flow/held-starts.ts";
import type { LanePartition } from "../lane/lane.ts";
import { LiveInstance, type LiveInstanceOptions } from "../live-instance.ts";
import type { Mail } from "../mail.ts";
import { type Opened, parseInbox } from "../parse-inbox.ts";
import type { Question } from "../queries/queries.ts";

/** Idle instances in order of use, oldest first. */
export class InstanceCache {
  readonly #max: number;
  readonly #idle = new Map<LiveInstance, () => void>();

  constructor(max: number) {
    this.#max = max;
  }

  /** `forget` removes the instance from its partition. */
  rest(instance: LiveInstance, forget: () => void): void {
    this.#idle.delete(instance);
    this.#idle.set(instance, forget);
    for (const [oldest, forgetOldest] of this.#idle) {
      if (this.#idle.size <= this.#max) return;
      this.#idle.delete(oldest);
      oldest.drop();
      forgetOldest();
    }
  }

  wake(instance: LiveInstance): void {
    this.#idle.delete(instance);
  }
}

interface PartitionInstancesOptions {
  alwaysReplay: boolean;
  /** How many instances may have work out on the lane at a time. */
  laneSeats: number;
  /**
   * True if this orchestrator holds the partition's lease, by a clock that keeps running while the process is
   * paused.
   */
  isHeld(): boolean;
}

export class PartitionInstances {
  readonly #deps: OrchestratorDeps;
  readonly #cache: InstanceCache;
  readonly #options: LiveInstanceOptions;
  readonly #instances = new Map<string, LiveInstance>();
  /** Starts under limits that wait for their keeper's decision. */
  readonly #holding: Holding;
  readonly #closed = new AbortController();
  /** Inbox sequences of messages that only a newer process can read. */
  readonly #forNewer = new Set<number>();
  /** Dead letters being stored. */
  readonly #burials = new Set<Promise<void>>();

  constructor(
    deps: OrchestratorDeps,
    cache: InstanceCache,
    { alwaysReplay, laneSeats, isHeld }: PartitionInstancesOptions,
  ) {
    this.#deps = deps;
    this.#cache = cache;
    // One options object for all: thousands of instances share it.
    this.#options = {
      signal: this.#closed.signal,
      alwaysReplay,
      laneSeats: { free: laneSeats, isHeld },
      onIdle: (idle) => this.#onIdle(idle),
      onMail: (busy) => this.#cache.wake(busy),
    };
    this.#holding = {
      put: (instanceId, mail) => this.put(instanceId, mail),
      signal: this.#closed.signal,
      seats: this.#options.laneSeats,
    };
  }

  get size(): number {
    return this.#instances.size;
  }

  receive(delivery: Delivery): void {
    if (this.#closed.signal.aborted) return;
    const opened = parseInbox(this.#deps.names, delivery, this.#deps.capabilities);
    if (opened.kind === "message") {
      const { instanceId, message } = opened;
      const isHeld = this.#instances.get(instanceId)?.holds(delivery.seq);
      if (message.kind === "start" && message.flow && !isHeld)
        return this.#deps.heldStarts.hold({ instanceId, start: message, delivery, holding: this.#holding });
      if ((message.kind === "cancel" && !message.parent) || message.kind === "terminate") {
        const status = message.kind === "cancel" ? "cancelled" : "terminated";
        const over = { status, reason: message.reason } as const;
        // The message follows the start: it ends an instance that an earlier owner has begun.
        this.#deps.heldStarts.endUnbegun(instanceId, over);
      }
      this.#instance(instanceId).put({ message, delivery });
      if (message.kind === "start") this.#deps.heldStarts.release(instanceId);
      return;
    }
    if (opened.kind === "held") return this.#hold(delivery, opened);
    const { instanceId: id, code, message, doubt } = opened;
    const what = this.#deps.names.parseInbox(delivery.subject)?.verb.kind ?? "unknown";
    if (doubt) this.#deps.runtime.announce({ kind: "capability.refused", what, why: doubt, instanceId: id });
    const burial = buryDelivery(this.#deps, delivery, { what: "inbox", id, code, message }).finally(() =>
      this.#burials.delete(burial),
    );
    this.#burials.add(burial);
  }

  /**
   * E1: this process never acknowledges the message. The partition's next owner gets it again, and the first
   * owner that can read it goes on. If the sender said what the message needs, the instance is shown as
   * parked with that reason.
   */
  #hold(delivery: Delivery, { instanceId, marked, message }: Extract<Opened, { kind: "held" }>): void {
    if (marked) {
      this.#instance(instanceId).put({
        message: { kind: "wake", wake: undefined },
        delivery,
        newer: message,
      });
      return;
    }
    delivery.putAside();
    if (this.#forNewer.has(delivery.seq)) return;
    this.#forNewer.add(delivery.seq);
    const why = `${delivery.subject} is held for a newer process: ${message}`;
    this.#deps.runtime.announce({ kind: "fault", where: "inbox", code: needsNewerVersion, message: why });
  }

  /** Instances that are not in memory are loaded to answer. */
  ask(instanceId: string, question: Question): void {
    if (!this.#closed.signal.aborted) this.#instance(instanceId).ask(question);
  }

  put(instanceId: string, mail: Mail): void {
    if (!this.#closed.signal.aborted) this.#instance(instanceId).put(mail);
  }

  /**
   * For reports by the lane: only an instance in memory takes them; any other instance gets them by the
   * inbox.
   */
  find(instanceId: string): LanePartition | undefined {
    return this.#closed.signal.aborted ? undefined : this.#instances.get(instanceId);
  }

  #instance(instanceId: string): LiveInstance {
    const known = this.#instances.get(instanceId);
    if (known) return known;
    const instance = new LiveInstance(instanceId, this.#deps, this.#options);
    this.#instances.set(instanceId, instance);
    return instance;
  }

  #onIdle(instance: LiveInstance): void {
    const forget = () => {
      if (this.#instances.get(instance.instanceId) === instance) this.#instances.delete(instance.instanceId);
    };
    if (instance.anchored) return; // stays in memory: its results arrive by the lane
    if (instance.loaded || instance.waitsForTimer || instance.remembers) this.#cache.rest(instance, forget);
    else forget();
  }

  /** No turn begins after this call; resolves when the running turns are done. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#deps.heldStarts.drop(this.#holding);
    await Promise.all([
      ...[...this.#instances.values()].map((instance) => instance.settle()),
      ...this.#burials,
    ]);
    for (const instance of this.#instances.values()) {
      this.#cache.wake(instance);
      instance.letGo();
    }
    this.#instances.clear();
  }
}
