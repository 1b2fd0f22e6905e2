/** The seats of one quota as this worker last saw them. No bus in here: what was read or written is noted, by revision. */
import type { QuotaSeat, SessionClaim } from "../../../../schemas/index.ts";
import type { Random } from "../../../../shared/runtime/index.ts";

/** What the last message of a seat's key says. Revision 0: there is none. */
export type SeatNote =
  | { kind: "free"; revision: number }
  | {
      kind: "taken";
      revision: number;
      /** Server time of that write. */
      at: number;
      /** Absent: of another version. Taken all the same, and nobody's to clear. */
      seat: QuotaSeat | undefined;
      /** When it is worth asking whether its holder still has the lease, on the monotonic clock. */
      lookAt: number;
    };

export type TakenSeat = Extract<SeatNote, { kind: "taken" }>;

export class SeatBoard {
  /** Undefined: of all sessions. */
  readonly type: string | undefined;
  readonly max: number;
  readonly #notes = new Map<number, SeatNote>();
  /** Being written by us now: not to be had twice. */
  readonly #trying = new Set<number>();
  #used = 0;

  constructor(type: string | undefined, max: number) {
    this.type = type;
    this.max = max;
  }

  /** All that are taken, also beyond the number of a quota that was larger before. */
  get used(): number {
    return this.#used;
  }

  get room(): number {
    return Math.max(0, this.max - this.#used - this.#trying.size);
  }

  /** True where this made room on a board that had none. */
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

  /** The seat this holder has for the session already: from an attachment before, or from a write that went unanswered. */
  seatOf({ sessionId }: Pick<SessionClaim, "sessionId">, holder: string): number | undefined {
    for (const [seat, note] of this.#notes) {
      if (note.kind !== "taken" || note.seat?.holder !== holder || this.#trying.has(seat)) continue;
      if (note.seat.session.sessionId === sessionId) return seat;
    }
    return undefined;
  }

  /** Somebody has taken one for the session: whoever that is may be about to claim it. */
  hasOneFor(sessionId: string): boolean {
    for (const note of this.#notes.values())
      if (note.kind === "taken" && note.seat?.session.sessionId === sessionId) return true;
    return false;
  }

  /** Any free one, so that many who come at once do not all want the first. */
  anyFree(random: Random): number | undefined {
    if (this.room === 0) return undefined;
    const start = Math.floor(random.next() * this.max);
    for (let i = 0; i < this.max; i++) {
      const seat = ((start + i) % this.max) + 1;
      if (this.#notes.get(seat)?.kind !== "taken" && !this.#trying.has(seat)) return seat;
    }
    return undefined;
  }

  /** Until the returned function is called. */
  trying(seat: number): () => void {
    this.#trying.add(seat);
    return () => this.#trying.delete(seat);
  }

  /** Taken ones to look after now. They are not due again before `againAt`, unless noted anew. */
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

  /** When the next one is due; infinite where none is. */
  nextLookAt(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const note of this.#notes.values()) if (note.kind === "taken") next = Math.min(next, note.lookAt);
    return next;
  }
}
