/**
 * The seats of one quota as this worker last saw them. It does not use the bus: callers note what they read
 * or wrote, by revision.
 */
import type { QuotaSeat, SessionClaim } from "../../../../schemas/index.ts";
import type { Random } from "../../../../shared/runtime/index.ts";

/** The content of the last message of a seat's key. Revision 0: the key has no message. */
export type SeatNote =
  | { kind: "free"; revision: number }
  | {
      kind: "taken";
      revision: number;
      /** Server time of that write. */
      at: number;
      /**
       * Undefined: written by another version. The seat counts as taken, and this worker may not clear it.
       */
      seat: QuotaSeat | undefined;
      /** When to ask next whether the holder still has the lease, on the monotonic clock. */
      lookAt: number;
    };

export type TakenSeat = Extract<SeatNote, { kind: "taken" }>;

export class SeatBoard {
  /** Undefined: the quota of all sessions. */
  readonly type: string | undefined;
  readonly max: number;
  readonly #notes = new Map<number, SeatNote>();
  /** Seats that this worker is writing now: not to be taken a second time. */
  readonly #trying = new Set<number>();
  #used = 0;

  constructor(type: string | undefined, max: number) {
    this.type = type;
    this.max = max;
  }

  /** All taken seats, including those beyond the present number of a quota that was larger before. */
  get used(): number {
    return this.#used;
  }

  get room(): number {
    return Math.max(0, this.max - this.#used - this.#trying.size);
  }

  /** Returns true if this made room on a board that had none. */
  note(seat: number, note: SeatNote): boolean {
    const before = this.#notes.get(seat);
    const isOld = before !== undefined && note.revision !== 0 && note.revision < before.revision;
    if (isOld) return false;
    const wasFull = this.room === 0;
    this.#used += Number(note.kind === "taken") - Number(before?.kind === "taken");
    this.#notes.set(seat, note);
    return wasFull && this.room > 0;
  }

  revisionOf(seat: number): number {
    return this.#notes.get(seat)?.revision ?? 0;
  }

  /**
   * The seat that this holder already has for the session: from an earlier attachment, or from a write
   * without an answer.
   */
  seatOf({ sessionId }: Pick<SessionClaim, "sessionId">, holder: string): number | undefined {
    for (const [seat, note] of this.#notes) {
      if (note.kind !== "taken" || note.seat?.holder !== holder || this.#trying.has(seat)) continue;
      if (note.seat.session.sessionId === sessionId) return seat;
    }
    return undefined;
  }

  /** True if a worker has taken a seat for the session and may be about to claim it. */
  hasOneFor(sessionId: string): boolean {
    for (const note of this.#notes.values())
      if (note.kind === "taken" && note.seat?.session.sessionId === sessionId) return true;
    return false;
  }

  /** A random free seat, so that many takers at once do not all want the first. */
  anyFree(random: Random): number | undefined {
    if (this.room === 0) return undefined;
    const start = Math.floor(random.next() * this.max);
    for (let i = 0; i < this.max; i++) {
      const seat = ((start + i) % this.max) + 1;
      if (this.#notes.get(seat)?.kind !== "taken" && !this.#trying.has(seat)) return seat;
    }
    return undefined;
  }

  /** Marks the seat until the returned function is called. */
  trying(seat: number): () => void {
    this.#trying.add(seat);
    return () => this.#trying.delete(seat);
  }

  /** Taken seats to check now. They are not due again before `againAt`, unless noted anew. */
  due(now: number, againAt: number): { seat: number; note: TakenSeat }[] {
    const due: { seat: number; note: TakenSeat }[] = [];
    for (const [seat, note] of this.#notes) {
      if (note.kind !== "taken" || note.lookAt > now) continue;
      due.push({ seat, note });
      this.#notes.set(seat, { ...note, lookAt: againAt });
    }
    return due;
  }

  lookAgain(seat: number, revision: number, lookAt: number): void {
    const note = this.#notes.get(seat);
    if (note?.kind === "taken" && note.revision === revision) this.#notes.set(seat, { ...note, lookAt });
  }

  /** When the next check is due; infinite if none is. */
  nextLookAt(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const note of this.#notes.values()) if (note.kind === "taken") next = Math.min(next, note.lookAt);
    return next;
  }
}
