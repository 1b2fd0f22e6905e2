/**
 * Holds this orchestrator's fair share of partitions: claims free ones, gives up surplus ones, and adjusts
 * when one is lost.
 */
import { Bucket, leaseKeys, type Stoppable } from "../../../shared/bus/index.ts";
import type { Lease, Leases } from "../../../shared/leases/index.ts";
import { hash32, once, type Service, type Timer } from "../../../shared/runtime/index.ts";
import { OrchestratorDeaths } from "../deaths/orchestrator-deaths.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { LanePartition } from "../lane/lane.ts";
import { fairShare } from "./fair-share.ts";
import { Partition } from "./partition.ts";
import type { InstanceCache } from "./partition-instances.ts";

interface PartitionsOptions {
  count: number;
  leases: Leases;
  cache: InstanceCache;
  alwaysReplay: boolean;
  /** Messages delivered per partition and not yet settled: the back-pressure of the inbox. */
  maxMessages: number;
  /** How many messages of a partition the server lets be unacknowledged before it stops delivering. */
  maxUnacknowledged: number;
  /** How often the next orchestrator is asked whether it lives. */
  deathProbeMs?: number | undefined;
}

const lookEveryMs = 5000;

export class Partitions implements Service {
  readonly #deps: OrchestratorDeps;
  readonly #options: PartitionsOptions;
  readonly #held = new Map<number, Partition>();
  /** Partitions with a holder, according to the lease bucket. */
  readonly #taken = new Set<number>();
  readonly #others = new Set<string>();
  readonly #deaths: OrchestratorDeaths;
  readonly #watches: Stoppable[] = [];
  #membership: Lease | undefined;
  #timer: Timer | undefined;
  #balancing: Promise<void> | undefined;
  #again = false;
  readonly #ended = new AbortController();

  constructor(deps: OrchestratorDeps, options: PartitionsOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#deaths = new OrchestratorDeaths(deps, this.#others, options.deathProbeMs);
  }

  get held(): number[] {
    return [...this.#held.keys()].sort((a, b) => a - b);
  }

  get instances(): number {
    let sum = 0;
    for (const partition of this.#held.values()) sum += partition.instances;
    return sum;
  }

  /** The instance, if it is in this process's memory. */
  find(instanceId: string): LanePartition | undefined {
    for (const partition of this.#held.values()) {
      const found = partition.find(instanceId);
      if (found) return found;
    }
    return undefined;
  }

  /** The instance's partition, if this orchestrator holds it; the instance need not be in memory. */
  partitionOf(instanceId: string): Partition | undefined {
    const partition = this.#held.get(hash32(instanceId) % this.#options.count);
    return partition?.isHeld ? partition : undefined;
  }

  async start(): Promise<void> {
    const { bus, names } = this.#deps;
    this.#options.leases.onLost((lease) => {
      this.#lost(lease).catch((error: unknown) => this.#complain(`after losing ${lease.key}`, error));
    });
    const leases = new Bucket(bus, names.engineBucket);
    await this.#watchBucket(leases, leaseKeys.allPartitions, (key, present) => {
      const partition = leaseKeys.parsePartition(key);
      if (present) this.#taken.add(partition);
      else this.#taken.delete(partition);
      if (!present) this.#balance();
    });
    await this.#watchBucket(leases, leaseKeys.member("*"), (key, present) => {
      const id = memberOf(key);
      if (id === this.#deps.id) return;
      if (present ? this.#others.has(id) : !this.#others.has(id)) return;
      if (present) this.#others.add(id);
      else this.#others.delete(id);
      this.#deaths.follow();
      this.#balance();
    });
    await this.#join();
    bus.onState((state) => {
      if (state.kind === "reconnected")
        for (const partition of this.#held.values()) {
          partition.refresh().catch((error: unknown) => this.#broken(partition, error));
        }
    });
    await this.#balance();
    this.#tick();
  }

  /** Membership is a lease too: a dead orchestrator stops counting when its partitions become free. */
  async #join(): Promise<void> {
    const { leases } = this.#options;
    const outcome = await leases.claim(leaseKeys.member(this.#deps.id), { v: 1, holder: this.#deps.id });
    if (outcome.kind === "granted") this.#membership = outcome.lease;
  }

  async #watchBucket(
    bucket: Bucket,
    filter: string,
    onChange: (key: string, present: boolean) => void,
  ): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const onEntry = (event: { kind: string; key: string }) => onChange(event.key, event.kind === "put");
      bucket
        .watch(filter, { onEntry, onCaughtUp: resolve })
        .then((watch) => this.#watches.push(watch), reject);
    });
  }

  /** Looks regularly, in case a change of the lease bucket was missed, or the bucket was created anew. */
  #tick(): void {
    this.#timer = this.#deps.runtime.clock.after(lookEveryMs, async () => {
      if (this.#ended.signal.aborted) return;
      try {
        await this.#look();
        if (!this.#membership) await this.#join();
      } catch (error) {
        this.#complain("looking for free partitions", error);
      }
      this.#balance();
      if (!this.#ended.signal.aborted) this.#tick();
    });
  }

  async #look(): Promise<void> {
    const { bus, names } = this.#deps;
    const leases = new Bucket(bus, names.engineBucket);
    const taken: number[] = [];
    for await (const { key } of leases.entries(leaseKeys.allPartitions))
      taken.push(leaseKeys.parsePartition(key));
    replaceAll(this.#taken, taken);
    const members: string[] = [];
    for await (const { key } of leases.entries(leaseKeys.member("*"))) members.push(memberOf(key));
    replaceAll(
      this.#others,
      members.filter((id) => id !== this.#deps.id),
    );
    this.#deaths.follow();
  }

  #balance(): Promise<void> {
    if (this.#ended.signal.aborted) return Promise.resolve();
    this.#again = true;
    return (this.#balancing ??= this.#balanceUntilQuiet().finally(() => {
      this.#balancing = undefined;
    }));
  }

  async #balanceUntilQuiet(): Promise<void> {
    while (this.#again && !this.#ended.signal.aborted) {
      this.#again = false;
      const { count } = this.#options;
      const all = Array.from({ length: count }, (_, partition) => partition);
      const free = all.filter((partition) => !this.#held.has(partition) && !this.#taken.has(partition));
      const decision = fairShare({
        partitions: count,
        orchestrators: this.#others.size + 1,
        held: this.held,
        free,
      });
      const before = new Set(this.#held.values());
      try {
        await Promise.all([
          ...decision.claim.map((partition) => this.#claim(partition)),
          ...decision.release.map((partition) => this.#release(partition)),
        ]);
      } catch (error) {
        this.#complain("partitions could not be balanced", error);
      }
      const gained = [...this.#held.values()].filter((partition) => !before.has(partition));
      // Not awaited: there may be thousands of parked instances, and other partitions wait to be claimed.
      void this.#lookAtParked(gained);
    }
  }

  /** The earlier owner may have had other code (T6). */
  async #lookAtParked(gained: readonly Partition[]): Promise<void> {
    if (gained.length === 0) return;
    try {
      await this.#deps.parked.wakeAll(
        Math.max(...gained.map(({ lease }) => lease.epoch)),
        this.#ended.signal,
      );
    } catch (error) {
      this.#complain("parked instances could not be looked at", error);
    }
  }

  async #claim(partition: number): Promise<void> {
    const { leases } = this.#options;
    // Before the claim, not after: otherwise this could overwrite the news that the holder's lease ended
    // meanwhile.
    this.#taken.add(partition);
    const outcome = await leases.claim(leaseKeys.partition(partition), { v: 1, holder: this.#deps.id });
    if (outcome.kind === "taken") return;
    const { lease } = outcome;
    if (this.#ended.signal.aborted) {
      await leases.release(lease);
      return;
    }
    const held = new Partition(this.#deps, {
      ...this.#options,
      partition,
      lease,
      onBroken: (broken, error) => void this.#broken(broken, error),
    });
    this.#held.set(partition, held);
    this.#deps.runtime.announce({ kind: "partition.gained", partition, epoch: lease.epoch });
    try {
      await held.start();
    } catch (error) {
      // A partition held and not served is worse than one not held.
      await this.#release(partition);
      throw error;
    }
  }

  async #release(partition: number): Promise<void> {
    const held = this.#held.get(partition);
    if (!held) return;
    this.#held.delete(partition);
    await held.stop();
    await this.#options.leases.release(held.lease);
    this.#deps.runtime.announce({ kind: "partition.lost", partition, why: "released" });
  }

  async #lost(lease: Lease): Promise<void> {
    if (lease === this.#membership) {
      this.#membership = undefined;
      return this.#ended.signal.aborted ? undefined : this.#join();
    }
    const lost = [...this.#held.values()].find((held) => held.lease === lease);
    if (!lost) return;
    this.#held.delete(lost.number);
    this.#taken.delete(lost.number);
    this.#deps.runtime.announce({ kind: "partition.lost", partition: lost.number, why: "expired" });
    this.#balance();
    await lost.stop();
  }

  /** Announces the fault; the next look tries again. */
  #complain(what: string, error: unknown): void {
    const message = `${what}: ${error instanceof Error ? error.message : String(error)}`;
    this.#deps.runtime.announce({
      kind: "fault",
      where: "partitions",
      code: "partitions_failed",
      message,
      error,
    });
  }

  async #broken(partition: Partition, error: unknown): Promise<void> {
    this.#complain(`partition ${partition.number} could not be served`, error);
    try {
      if (this.#held.get(partition.number) === partition) await this.#release(partition.number);
    } catch (failure) {
      this.#complain(`partition ${partition.number} could not be released`, failure);
    }
  }

  stop = once(async () => {
    this.#ended.abort();
    this.#timer?.cancel();
    await this.#deaths.stop();
    await Promise.all(this.#watches.map((watch) => watch.stop()));
    await this.#balancing;
    await Promise.all(this.held.map((partition) => this.#release(partition)));
    if (this.#membership) await this.#options.leases.release(this.#membership);
  });
}

const memberOf = (key: string): string => key.slice(leaseKeys.member("").length);

function replaceAll<T>(set: Set<T>, by: Iterable<T>): void {
  set.clear();
  for (const one of by) set.add(one);
}
