import type { LeaseValue } from "../../schemas/index.ts";
import type { Bus } from "../bus/index.ts";
import { readServerClocks, skewOf, streamsWithLeaseBucket } from "../bus/index.ts";
import { announceFault, type Runtime, token } from "../runtime/index.ts";
import { type ClaimedKey, claimKey, leaseBody } from "./claim.ts";
import { DueTimes } from "./due-times.ts";
import { Holding } from "./holding.ts";
import {
  type ClaimOutcome,
  type Lease,
  type Leases,
  type LossWhy,
  type LostListener,
  requireLittleSkew,
  requireTtl,
} from "./lease.ts";
import { LeaseStore } from "./lease-store.ts";

interface LeaseKeeperOptions {
  bus: Bus;
  /** Full name of the bucket: `names.bucket("leases")`. */
  bucket: string;
  runtime: Runtime;
  ttlMs: number;
  /** Called after every renewal with the time until which the holder may act, on the monotonic clock. */
  onHeldUntil?: (lease: Lease, deadline: number) => void;
  /** How long a claim or a release may go unanswered. */
  giveUpAfterMs?: number;
}

/** Renews leases until they are released or lost, and reports that end exactly once. */
export class LeaseKeeper implements Leases {
  readonly #runtime: Runtime;
  readonly #store: LeaseStore;
  readonly #ttlMs: number;
  readonly #onHeldUntil: ((lease: Lease, deadline: number) => void) | undefined;
  readonly #giveUpAfterMs: number;
  readonly #holdings = new Map<Lease, Holding>();
  readonly #listeners = new Set<LostListener>();
  readonly #renewals: DueTimes<Holding>;
  readonly #deadlines: DueTimes<Holding>;
  readonly #bus: Bus;
  readonly #bucket: string;
  #skewMs = 0;
  #stopped = false;

  constructor(options: LeaseKeeperOptions) {
    this.#runtime = options.runtime;
    this.#bus = options.bus;
    this.#bucket = options.bucket;
    this.#store = new LeaseStore(options.bus, options.bucket);
    this.#ttlMs = requireTtl(options.ttlMs);
    this.#onHeldUntil = options.onHeldUntil;
    this.#giveUpAfterMs = options.giveUpAfterMs ?? 5000;
    this.#renewals = new DueTimes(options.runtime.clock, (due) => void this.#renewAll(due));
    this.#deadlines = new DueTimes(options.runtime.clock, (due) => this.#fence(due));
  }

  /** Throws if the clocks of the servers are too far apart to keep a lease. */
  async start(): Promise<void> {
    this.#stopped = false;
    if (!this.#bus.clustered()) return;
    const skew = skewOf(await readServerClocks(this.#bus, streamsWithLeaseBucket(this.#bucket)));
    this.#skewMs = requireLittleSkew(this.#ttlMs, skew);
  }

  /**
   * Stops renewing and releases nothing: leases still held run out, and the watcher reports their loss to the
   * instances.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#renewals.clear();
    this.#deadlines.clear();
    for (const holding of this.#holdings.values()) holding.end();
    this.#holdings.clear();
  }

  async claim(key: string, value: LeaseValue, ttlMs = this.#ttlMs): Promise<ClaimOutcome> {
    requireTtl(ttlMs);
    const { clock, random } = this.#runtime;
    const claimId = token(random);
    const body = leaseBody(value);
    const giveUpAfterMs = this.#giveUpAfterMs;
    const skewMs = this.#skewMs;
    const won = await claimKey(this.#store, clock, { key, claimId, body, ttlMs, giveUpAfterMs, skewMs });
    if (won.kind === "taken") return won;
    const holding = this.#holdingOf({ key, claimId, body, ttlMs, won });
    if (this.#stopped) {
      await holding.release(giveUpAfterMs);
      return { kind: "taken", why: "spent", holder: undefined, revision: won.epoch };
    }
    this.#hold(holding);
    return { kind: "granted", lease: holding.lease };
  }

  /** Renews from now on a key that was claimed over another connection of this process. */
  keep(claimed: ClaimedKey): Lease {
    const holding = this.#holdingOf(claimed);
    this.#hold(holding);
    return holding.lease;
  }

  /** Largest difference between the servers' clocks, measured at the start. */
  get skewMs(): number {
    return this.#skewMs;
  }

  #holdingOf({ key, claimId, body, ttlMs, won: { epoch, revision, beganAt } }: ClaimedKey): Holding {
    const lease: Lease = Object.freeze({ key, epoch, ttlMs });
    const { clock } = this.#runtime;
    const store = this.#store;
    return new Holding({ store, clock, lease, claimId, body, revision, beganAt, skewMs: this.#skewMs });
  }

  release(lease: Lease): Promise<"released" | "gone"> {
    const holding = this.#holdings.get(lease);
    if (holding === undefined) return Promise.resolve("gone");
    this.#holdings.delete(lease);
    return holding.release(this.#giveUpAfterMs);
  }

  isHeld(lease: Lease): boolean {
    return this.#holdings.get(lease)?.good ?? false;
  }

  /** Until when the holder may act, on the monotonic clock; undefined once the lease has ended. */
  deadlineOf(lease: Lease): number | undefined {
    return this.#holdings.get(lease)?.deadline;
  }

  held(): Lease[] {
    return [...this.#holdings.keys()];
  }

  onLost(listener: LostListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #hold(holding: Holding): void {
    const { clock, random, announce } = this.#runtime;
    this.#holdings.set(holding.lease, holding);
    announce({ kind: "lease.granted", key: holding.lease.key, epoch: holding.lease.epoch });
    // Spread the first renewals: leases claimed at once must not be renewed at once.
    const first = (holding.timing.renewEveryMs * (1 + random.next())) / 2;
    this.#renewals.add(holding, clock.monotonic() + first);
    this.#deadlines.add(holding, holding.deadline);
  }

  async #renewAll(due: Holding[]): Promise<void> {
    const { clock, announce } = this.#runtime;
    const startedAt = clock.monotonic();
    const renewed = await Promise.all(due.map((holding) => this.#renewOne(holding)));
    const keys = renewed.filter(Boolean).length;
    if (keys > 0) announce({ kind: "lease.renewed", keys, ms: clock.monotonic() - startedAt });
  }

  async #renewOne(holding: Holding): Promise<boolean> {
    if (!holding.held || this.#stopped) return false;
    if (!holding.good) {
      this.#lose(holding, "expired");
      return false;
    }
    const renewal = await this.#renewSafely(holding);
    if (!holding.held || this.#stopped) return false;
    if (!holding.good && renewal.kind !== "lost") {
      this.#lose(holding, "expired"); // LEASE-1: even if the renewal succeeded just now
      return false;
    }
    this.#onHeldUntil?.(holding.lease, holding.deadline);
    const { clock, random } = this.#runtime;
    const { renewEveryMs, retryAfterMs } = holding.timing;
    switch (renewal.kind) {
      case "renewed":
        this.#renewals.add(holding, clock.monotonic() + renewEveryMs * (0.9 + random.next() / 10));
        return true;
      case "unanswered":
        this.#renewals.add(holding, clock.monotonic() + retryAfterMs);
        return false;
      case "lost":
        this.#lose(holding, renewal.why);
        return false;
    }
  }

  /** One failed renewal does not lose a lease; failing until the deadline does. */
  async #renewSafely(holding: Holding): ReturnType<Holding["renew"]> {
    try {
      return await holding.renew();
    } catch (error) {
      announceFault(this.#runtime, "lease.renew", error, { code: "renewal_failed" });
      return { kind: "unanswered" };
    }
  }

  /**
   * S7: the lease ends here before it can end at the server. A lease renewed meanwhile is checked again at
   * its new deadline.
   */
  #fence(due: Holding[]): void {
    for (const holding of due) {
      if (!holding.held) continue;
      if (holding.good) this.#deadlines.add(holding, holding.deadline);
      else this.#lose(holding, "expired");
    }
  }

  #lose(holding: Holding, why: LossWhy): void {
    const { lease } = holding;
    holding.end();
    if (!this.#holdings.delete(lease)) return;
    this.#runtime.announce({ kind: "lease.lost", key: lease.key, epoch: lease.epoch, why });
    for (const listener of this.#listeners) listener(lease, why);
  }
}
