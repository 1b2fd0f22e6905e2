/**
 * Reads and writes seats of quotas. Every write is a CAS on the revision that the board knows, and the board
 * notes the result.
 */
import { QuotaSeat } from "../../../../schemas/index.ts";
import {
  Bucket,
  type Bus,
  bucketSubject,
  decode,
  encode,
  leaseKeys,
  type Stoppable,
  type StoredMessage,
  type Subjects,
} from "../../../../shared/bus/index.ts";
import { Fault } from "../../../../shared/errors/index.ts";
import type { Clock, Runtime } from "../../../../shared/runtime/index.ts";
import type { SeatBoard, SeatNote } from "./seat-board.ts";

const timeoutMs = 2000;

interface SeatStoreInit {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  boards: readonly SeatBoard[];
  /** A board that was full has room. */
  onRoom: () => void;
}

export class SeatStore {
  readonly #bus: Bus;
  readonly #bucket: Bucket;
  readonly #clock: Clock;
  readonly #boards: readonly SeatBoard[];
  readonly #onRoom: () => void;

  constructor({ bus, names, runtime, boards, onRoom }: SeatStoreInit) {
    this.#bus = bus;
    this.#bucket = new Bucket(bus, names.bucket("leases"), { random: runtime.random });
    this.#clock = runtime.clock;
    this.#boards = boards;
    this.#onRoom = onRoom;
  }

  /** Resolves when every seat taken so far is on its board. */
  async follow(): Promise<Stoppable> {
    let caughtUp: () => void = () => undefined;
    const known = new Promise<void>((resolve) => {
      caughtUp = resolve;
    });
    let isNew = false;
    const view = await this.#bus.tail(this.#bucket.stream, this.#subject(leaseKeys.allSeats), {
      existing: true,
      onMessage: (message) => {
        const address = leaseKeys.parseSeat(message.subject.slice(this.#subject("").length));
        const board = address && this.#boards.find(({ type }) => type === address.type);
        if (board) this.#note(board, address.seat, this.#read(message, isNew));
      },
      onCaughtUp: () => {
        isNew = true;
        caughtUp();
      },
    });
    await known;
    return view;
  }

  /**
   * Returns the revision written, or undefined if another worker was faster. Throws a transient fault if the
   * outcome is unknown.
   */
  async take(
    board: SeatBoard,
    seat: number,
    value: QuotaSeat,
    expected: number,
  ): Promise<number | undefined> {
    const key = leaseKeys.seat(board.type, seat);
    const outcome = await this.#bucket.update(key, encode(value), expected, { timeoutMs });
    switch (outcome.kind) {
      case "written": {
        const { revision } = outcome;
        // The view has brought, or will bring, the server's time of this write.
        if (board.revisionOf(seat) < revision) {
          const lookAt = this.#clock.monotonic() + value.leaseTtlMs;
          const at = Number.POSITIVE_INFINITY;
          this.#note(board, seat, { kind: "taken", revision, at, seat: value, lookAt });
        }
        return revision;
      }
      case "conflict":
        await this.#readBack(board, seat);
        return undefined;
      case "unknown":
        throw new Fault("transient", {
          code: "seat_unanswered",
          message: `the server did not answer the claim of seat ${key}; if it was stored, the next worker that needs the seat clears it`,
        });
    }
  }

  /** Clears the seat only at the revision seen: a seat taken anew meanwhile stays taken. */
  async clear(board: SeatBoard, seat: number, revision: number): Promise<void> {
    const key = leaseKeys.seat(board.type, seat);
    const outcome = await this.#bucket.delete(key, { revision, timeoutMs });
    if (outcome.kind === "written") this.#note(board, seat, { kind: "free", revision: outcome.revision });
    if (outcome.kind === "conflict") await this.#readBack(board, seat);
  }

  /** Reads the seat after a conflict, because the view may lag behind. */
  async #readBack(board: SeatBoard, seat: number): Promise<void> {
    const subject = this.#subject(leaseKeys.seat(board.type, seat));
    const message = await this.#bus.last(this.#bucket.stream, subject, { leader: true });
    this.#note(board, seat, message ? this.#read(message, true) : { kind: "free", revision: 0 });
  }

  #note(board: SeatBoard, seat: number, note: SeatNote): void {
    if (board.note(seat, note)) this.#onRoom();
  }

  /** The lease of a seat taken just now cannot be over before its TTL is. */
  #read(message: StoredMessage, isNew: boolean): SeatNote {
    const event = this.#bucket.event(message);
    const { revision, at } = event;
    if (event.kind !== "put") return { kind: "free", revision };
    const decoded = decode(QuotaSeat, event.value);
    const seat = decoded.kind === "ok" ? decoded.value : undefined;
    const lookAt = this.#clock.monotonic() + (isNew ? (seat?.leaseTtlMs ?? 0) : 0);
    return { kind: "taken", revision, at, seat, lookAt };
  }

  #subject(key: string): string {
    return bucketSubject(this.#bucket.name, key);
  }
}
