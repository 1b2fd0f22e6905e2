/** Whose seat is it still? Asked only where a quota is reached and somebody waits for a seat. */
import type { QuotaSeat } from "../../../../schemas/index.ts";
import { bucketStream, leaseKeys } from "../../../../shared/bus/index.ts";
import { LeaseStore, type Look } from "../../../../shared/leases/index.ts";
import type { ServerTime } from "../claiming/server-time.ts";
import type { SessionDeps } from "../session-deps.ts";
import type { SeatBoard, TakenSeat } from "./seat-board.ts";
import type { SeatStore } from "./seat-store.ts";

export type CareDeps = Pick<SessionDeps, "bus" | "names" | "runtime">;

/** Asked for one board at a time. */
const atOnce = 32;
/** The server notes an expiry up to 0.3 s late. */
const shortestMs = 100;
/** Where nothing came of looking, it is tried again. */
const unansweredMs = 1000;

export type SeatVerdict =
  | "held"
  /** Not claimed yet, or given back so long ago that nothing is left of it: its age decides (QUOTA-3). */
  | "unclaimed"
  | "expired"
  | "over";

/** A lease of somebody else is never the holder's again: attachments are claimed once (LEASE-4). */
export function judgeSeat({ holder }: Pick<QuotaSeat, "holder">, lease: Look): SeatVerdict {
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
  readonly #time: ServerTime;
  readonly #leases: LeaseStore;
  readonly #stream: string;
  #outage: { endedAt: number; awayMs: number } | undefined;

  constructor(deps: CareDeps, store: SeatStore, time: ServerTime) {
    this.#deps = deps;
    this.#store = store;
    this.#time = time;
    const bucket = deps.names.bucket("leases");
    this.#leases = new LeaseStore(deps.bus, bucket);
    this.#stream = bucketStream(bucket);
  }

  /** S14: owners that come back after an outage find their seats as they left them. */
  follow(): () => void {
    const { bus, runtime } = this.#deps;
    return bus.onState((state) => {
      if (state.kind !== "reconnected") return;
      this.#outage = { endedAt: runtime.clock.monotonic(), awayMs: state.awayMs };
    });
  }

  /** Clears the seats of this board whose holders have lost their lease, as far as one could have by now. */
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

  /** 0: it is over. Otherwise how long it cannot be. */
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

  /** Only says when to look again: clocks may be wrong. */
  #untilExpiry(lease: Look, ttlMs: number): number {
    if (lease.kind !== "held") return 0;
    const now = this.#time.now() ?? this.#deps.runtime.clock.now();
    return Math.min(ttlMs, lease.at + ttlMs - now);
  }

  /** QUOTA-3. Both times are the server's. */
  async #untilOld(at: number, ttlMs: number): Promise<number> {
    const info = await this.#deps.bus.streamInfo(this.#stream);
    if (info === undefined || !Number.isFinite(at)) return ttlMs;
    return Math.max(0, at + ttlMs - info.seenAt);
  }

  /** The watcher waits as long before it tells of a loss. */
  #graceMs(ttlMs: number): number {
    if (this.#outage === undefined || this.#outage.awayMs < ttlMs / 3) return 0;
    return Math.max(0, this.#outage.endedAt + ttlMs - this.#deps.runtime.clock.monotonic());
  }
}
