/**
 * Checks whether holders of seats still have their leases. Done only while a quota is reached and a claim
 * waits for a seat.
 */
import type { QuotaSeat } from "../../../../schemas/index.ts";
import { bucketStream, leaseKeys } from "../../../../shared/bus/index.ts";
import { type LeaseKeyState, LeaseStore } from "../../../../shared/leases/index.ts";
import type { SessionDeps } from "../session-deps.ts";
import type { SeatBoard, TakenSeat } from "./seat-board.ts";
import type { SeatStore } from "./seat-store.ts";

export type CareDeps = Pick<SessionDeps, "bus" | "names" | "runtime">;

/** Seats checked at a time, per board. */
const atOnce = 32;
/** The server notes an expiry up to 0.3 s late. */
const shortestMs = 100;
/** Pause before the next try if the server did not answer. */
const unansweredMs = 1000;

type SeatVerdict =
  | "held"
  /**
   * The lease is not claimed yet, or was given back so long ago that no trace is left: the seat's age decides
   * (QUOTA-3).
   */
  | "unclaimed"
  | "expired"
  | "over";

/**
 * A lease that another worker has never becomes the holder's again: attachments are claimed once (LEASE-4).
 */
export function judgeSeat({ holder }: Pick<QuotaSeat, "holder">, lease: LeaseKeyState): SeatVerdict {
  switch (lease.kind) {
    case "held":
      return lease.holder === undefined || lease.holder === holder ? "held" : "over";
    case "expired":
      return "expired";
    case "released":
      return "over";
    case "none":
      return "unclaimed";
  }
}

export class SeatCare {
  readonly #deps: CareDeps;
  readonly #store: SeatStore;
  readonly #leases: LeaseStore;
  readonly #stream: string;
  #outage: { endedAt: number; awayMs: number } | undefined;

  constructor(deps: CareDeps, store: SeatStore) {
    this.#deps = deps;
    this.#store = store;
    const bucket = deps.names.bucket("leases");
    this.#leases = new LeaseStore(deps.bus, bucket);
    this.#stream = bucketStream(bucket);
  }

  /** S14: holders that come back after an outage find their seats as they left them. */
  follow(): () => void {
    const { bus, runtime } = this.#deps;
    return bus.onState((state) => {
      if (state.kind !== "reconnected") return;
      this.#outage = { endedAt: runtime.clock.monotonic(), awayMs: state.awayMs };
    });
  }

  /** Clears the seats of this board whose holders have lost their lease. */
  async clearOver(board: SeatBoard): Promise<void> {
    const now = this.#deps.runtime.clock.monotonic();
    const due = board.due(now, now + unansweredMs);
    for (let i = 0; i < due.length; i += atOnce) {
      const some = due.slice(i, i + atOnce);
      await Promise.all(some.map(({ seat, note }) => this.#look(board, seat, note)));
    }
  }

  async #look(board: SeatBoard, seat: number, note: TakenSeat): Promise<void> {
    if (!note.seat) return;
    const leftMs = await this.#leftMs(note, note.seat);
    if (leftMs <= 0) return this.#store.clear(board, seat, note.revision);
    const lookAt = this.#deps.runtime.clock.monotonic() + Math.max(shortestMs, leftMs);
    board.lookAgain(seat, note.revision, lookAt);
  }

  /** 0: the holder's right is over. Otherwise the time for which it cannot be over. */
  async #leftMs({ at }: TakenSeat, seat: QuotaSeat): Promise<number> {
    const { sessionId, attachment } = seat.session;
    const lease = await this.#leases.look(leaseKeys.session(sessionId, attachment));
    const verdict = judgeSeat(seat, lease);
    switch (verdict) {
      case "held":
        return Math.max(shortestMs, this.#untilExpiry(lease, seat.leaseTtlMs));
      case "unclaimed":
        return this.#untilOld(at, seat.leaseTtlMs);
      case "expired":
        return this.#graceMs(seat.leaseTtlMs);
      case "over":
        return 0;
    }
  }

  /** Only decides when to look again: clocks may be wrong. */
  #untilExpiry(lease: LeaseKeyState, ttlMs: number): number {
    if (lease.kind !== "held") return 0;
    const now = this.#deps.runtime.clock.now();
    return Math.min(ttlMs, lease.at + ttlMs - now);
  }

  /** QUOTA-3. Both times are the server's. */
  async #untilOld(at: number, ttlMs: number): Promise<number> {
    const info = await this.#deps.bus.streamInfo(this.#stream);
    if (info === undefined || !Number.isFinite(at)) return ttlMs;
    return Math.max(0, at + ttlMs - info.seenAt);
  }

  /** The watcher waits the same time before it reports a loss. */
  #graceMs(ttlMs: number): number {
    if (this.#outage === undefined || this.#outage.awayMs < ttlMs / 3) return 0;
    return Math.max(0, this.#outage.endedAt + ttlMs - this.#deps.runtime.clock.monotonic());
  }
}
