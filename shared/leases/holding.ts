/**
 * One lease that its keeper holds: the write acknowledged last, and until when the holder may act under it.
 *
 * LEASE-1 A write counts only from the moment it *began*: the server stored it later than that, so `began +
 *    TTL` is never later than the server's own end of the lease. Minus a margin, that is the deadline (S7). A
 *    lease past its deadline stays over, whatever is answered later: its user may have checked it and
 *    stopped.
 * LEASE-2 An unanswered renewal may have been stored. The next one meets a conflict, reads, and recognises
 *    its own claim. Which of several unanswered renewals was stored is not known, so the earliest counts.
 */
import type { Clock } from "../runtime/index.ts";
import { type Lease, type LeaseTiming, type LossWhy, leaseTiming } from "./lease.ts";
import type { LeaseKeyState, LeaseStore } from "./lease-store.ts";

type Renewal = { kind: "renewed" } | { kind: "unanswered" } | { kind: "lost"; why: LossWhy };

interface HoldingInit {
  store: LeaseStore;
  clock: Clock;
  lease: Lease;
  claimId: string;
  body: Uint8Array;
  /** Revision of the claim that won, or of the write that followed it. */
  revision: number;
  beganAt: number;
  /** Largest difference between the servers' clocks. */
  skewMs: number;
}

export class Holding {
  readonly lease: Lease;
  readonly claimId: string;
  readonly timing: LeaseTiming;
  readonly #store: LeaseStore;
  readonly #clock: Clock;
  readonly #body: Uint8Array;
  #revision: number;
  #deadline: number;
  #unansweredSince: number | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #phase: "held" | "releasing" | "over" = "held";

  constructor(init: HoldingInit) {
    this.lease = init.lease;
    this.claimId = init.claimId;
    this.timing = leaseTiming(init.lease.ttlMs, init.skewMs);
    this.#store = init.store;
    this.#clock = init.clock;
    this.#body = init.body;
    this.#revision = init.revision;
    this.#deadline = this.#deadlineFrom(init.beganAt);
  }

  /** Until when the holder may act, on the monotonic clock. */
  get deadline(): number {
    return this.#deadline;
  }

  get held(): boolean {
    return this.#phase === "held";
  }

  /** True if the lease is held and not past its deadline: only then may the holder act. */
  get good(): boolean {
    return this.held && this.#clock.monotonic() < this.#deadline;
  }

  end(): void {
    this.#phase = "over";
  }

  renew(): Promise<Renewal> {
    return this.#alone(() => this.#renew());
  }

  /** Compares with the last known revision, so it cannot remove a successor's lease (S9). */
  release(giveUpAfterMs: number): Promise<"released" | "gone"> {
    if (this.#phase !== "held") return Promise.resolve("gone");
    this.#phase = "releasing";
    const giveUpAt = Math.min(this.#deadline, this.#clock.monotonic() + giveUpAfterMs);
    return this.#alone(() => this.#remove(giveUpAt)).finally(() => this.end());
  }

  async #renew(): Promise<Renewal> {
    if (!this.held) return { kind: "unanswered" };
    const beganAt = this.#clock.monotonic();
    const outcome = await this.#store.write({ ...this.#write(), body: this.#body, ttlMs: this.lease.ttlMs });
    switch (outcome.kind) {
      case "stored":
        this.#acknowledged(outcome.seq, beganAt);
        return { kind: "renewed" };
      case "unknown":
        this.#unansweredSince ??= beganAt;
        return { kind: "unanswered" };
      case "conflict":
        return this.#adopt(await this.#store.look(this.lease.key));
    }
  }

  /** LEASE-2. Returns `unanswered`, so that the next renewal follows soon and counts from its own start. */
  #adopt(look: LeaseKeyState): Renewal {
    if (look.kind === "held" && look.claimId === this.claimId) {
      this.#acknowledged(look.revision, this.#unansweredSince);
      return { kind: "unanswered" };
    }
    return { kind: "lost", why: whyGone(look) };
  }

  async #remove(giveUpAt: number): Promise<"released" | "gone"> {
    for (;;) {
      const outcome = await this.#store.remove(this.#write());
      if (outcome.kind === "stored") return "released";
      if (outcome.kind === "conflict") {
        const look = await this.#store.look(this.lease.key);
        if (look.kind === "held" && look.claimId === this.claimId && look.revision !== this.#revision) {
          this.#revision = look.revision;
          continue;
        }
        // An unanswered removal by this keeper also ends here: either way this claim no longer holds the key.
        return look.kind === "released" ? "released" : "gone";
      }
      if (this.#clock.monotonic() >= giveUpAt) return "gone"; // the lease runs out by itself
      await this.#pause(this.timing.retryAfterMs);
    }
  }

  #write() {
    return {
      key: this.lease.key,
      claimId: this.claimId,
      expected: this.#revision,
      timeoutMs: this.timing.publishTimeoutMs,
    };
  }

  #acknowledged(revision: number, beganAt: number | undefined): void {
    this.#revision = revision;
    this.#unansweredSince = undefined;
    if (beganAt !== undefined && this.good) {
      this.#deadline = Math.max(this.#deadline, this.#deadlineFrom(beganAt));
    }
  }

  #deadlineFrom(beganAt: number): number {
    return beganAt + this.lease.ttlMs - this.timing.marginMs;
  }

  /** One write of a lease at a time: the next write expects the revision that the last one returned. */
  #alone<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#writing.then(act, act);
    this.#writing = turn;
    return turn;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(ms, resolve));
  }
}

/** Until when the holder may act under a lease whose write began at `beganAt`. */
export const deadlineOf = (ttlMs: number, beganAt: number, skewMs: number): number =>
  beganAt + ttlMs - leaseTiming(ttlMs, skewMs).marginMs;

function whyGone(look: LeaseKeyState): LossWhy {
  switch (look.kind) {
    case "held":
      return "taken";
    case "released":
      return "released";
    case "none":
    case "expired":
      return "expired";
  }
}
