import type { SessionClaim, WorkerInfo } from "../../../../schemas/index.ts";
import { leaseKeys } from "../../../../shared/bus/index.ts";
import type { Clock, Timer } from "../../../../shared/runtime/index.ts";

/** How often the fleet is checked for changes. */
const lookEveryMs = 50;
const most = 1000;
/** Claims looked at again for one change; the others come by their next delivery. */
const atOnce = 32;

interface WaitingListener {
  again: (claim: SessionClaim) => void;
  /** A claim was forgotten because the queue delivers it again. */
  forgotten: () => void;
  /** How many of the claims that wait for a seat are worth another look. */
  room: (type: string) => number;
}

/**
 * Claims that no worker could take. They stay in the queue; when the fleet or this worker's room changes they
 * are looked at again at once (CLAIM-3). A forgotten claim only waits for its next delivery, so the number is
 * bounded.
 */
export class WaitingClaims {
  readonly #clock: Clock;
  readonly #view: () => readonly WorkerInfo[] | undefined;
  readonly #on: WaitingListener;
  readonly #claims = new Map<string, { claim: SessionClaim; until: number; forSeat: boolean }>();
  #timer: Timer | undefined;
  #seen: readonly WorkerInfo[] | undefined;

  constructor(clock: Clock, view: () => readonly WorkerInfo[] | undefined, on: WaitingListener) {
    this.#clock = clock;
    this.#view = view;
    this.#on = on;
  }

  add(
    claim: SessionClaim,
    { restMs, forSeat = false }: { restMs: number; forSeat?: boolean | undefined },
  ): void {
    if (this.#claims.size === 0) this.#seen = this.#view();
    const key = leaseKeys.session(claim.sessionId, claim.attachment);
    const until = this.#clock.monotonic() + restMs;
    if (this.#claims.size < most) this.#claims.set(key, { claim, until, forSeat });
    this.#arm();
  }

  hasType(type: string): boolean {
    for (const { claim } of this.#claims.values()) if (claim.type === type) return true;
    return false;
  }

  /** How many claims of the type wait for nothing but a seat. */
  forSeats(type: string): number {
    let claims = 0;
    for (const { claim, forSeat } of this.#claims.values()) claims += Number(forSeat && claim.type === type);
    return claims;
  }

  /** The room of this worker or of a quota changed. */
  changed(): void {
    const seats = new Map<string, number>();
    for (const [key, { claim, forSeat }] of [...this.#claims].slice(0, atOnce)) {
      if (forSeat) {
        const left = seats.get(claim.type) ?? this.#on.room(claim.type);
        seats.set(claim.type, left - 1);
        if (left <= 0) continue;
      }
      this.#claims.delete(key);
      this.#on.again(claim);
    }
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#claims.clear();
  }

  #arm(): void {
    if (this.#timer || this.#claims.size === 0) return;
    this.#timer = this.#clock.after(lookEveryMs, () => {
      this.#timer = undefined;
      this.#look();
      this.#arm();
    });
  }

  #look(): void {
    const now = this.#clock.monotonic();
    const before = this.#claims.size;
    for (const [key, { until }] of this.#claims) if (until <= now) this.#claims.delete(key);
    if (this.#claims.size < before) this.#on.forgotten();
    // The view makes a new list for every change.
    const view = this.#view();
    if (view === this.#seen) return;
    this.#seen = view;
    this.changed();
  }
}
