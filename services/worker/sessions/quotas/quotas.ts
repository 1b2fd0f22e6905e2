/**
 * Quotas over the whole installation: `maxTotal` of a type, WORKER_MAX_TOTAL_SESSIONS of all.
 *
 * QUOTA-1 A quota of n has n numbered seats in the lease bucket. A seat is taken by CAS before the lease it
 *    names is claimed, and given back after the lease was: a worker that has a lease has a seat, so there are
 *    never more than n. A claim that comes again leaves the seat of the lease it was taken with alone.
 * QUOTA-2 A seat is not renewed. It counts as long as its holder has the lease it names; a worker that needs
 *    a seat and finds the lease over clears the seat, by CAS. A dead holder's seat is free when its lease has
 *    expired, and not before.
 * QUOTA-3 A seat whose lease is not there (yet) is left alone for one TTL. A taker that needed longer for its
 *    lease makes sure of its seat before it acts.
 */
import type { QuotaSeat, SessionClaim, WorkerInfo } from "../../../../schemas/index.ts";
import type { Stoppable } from "../../../../shared/bus/index.ts";
import { leaseTiming } from "../../../../shared/leases/index.ts";
import { announceFault, once, type Service, type Timer } from "../../../../shared/runtime/index.ts";
import { quotaSentence } from "../../../../shared/sessions/index.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import { SeatBoard } from "./seat-board.ts";
import { type CareDeps, SeatCare } from "./seat-care.ts";
import { SeatStore } from "./seat-store.ts";

const soonestMs = 50;
const latestMs = 1000;

/** The seats of one session in the quotas that apply to it. */
export interface Seats {
  /**
   * Call once the lease is won (QUOTA-3). False: another worker has the seat, and the lease must not be used.
   */
  stillOurs(): Promise<boolean>;
  giveBack(): Promise<void>;
}

type QuotaClaim = Pick<SessionClaim, "type" | "instanceId" | "sessionId" | "attachment">;

type Seated = { kind: "seated"; seats: Seats } | { kind: "reached"; why: string };

interface Taken {
  board: SeatBoard;
  seat: number;
  revision: number;
}

const noSeats: Seats = { stillOurs: () => Promise.resolve(true), giveBack: () => Promise.resolve() };

type QuotaDeps = CareDeps &
  Pick<SessionDeps, "loadChanged"> & { identity: Pick<SessionDeps["identity"], "workerId"> };

interface QuotaLimits {
  types: ReadonlyMap<string, number>;
  all: number | undefined;
}

/** Seats that are being taken count as taken. */
const sentenceOf = ({ type, max, room, used }: SeatBoard): string =>
  quotaSentence(type, { used: Math.max(used, max - room), max });

export class Quotas implements Service {
  readonly #deps: QuotaDeps;
  readonly #timing: Pick<SessionTiming, "restMaxMs">;
  readonly #boards: readonly SeatBoard[];
  readonly #store: SeatStore;
  readonly #care: SeatCare;
  readonly #listeners = new Set<() => void>();
  /** Boards on which a claim was refused, and until when that counts: waiting claims come again sooner. */
  readonly #wanted = new Map<SeatBoard, { until: number; timer: Timer | undefined }>();
  readonly #stops: Stoppable[] = [];
  #stopped = false;

  constructor(deps: QuotaDeps, timing: Pick<SessionTiming, "restMaxMs">, limits: QuotaLimits) {
    this.#deps = deps;
    this.#timing = timing;
    const ofTypes = [...limits.types].map(([type, max]) => new SeatBoard(type, max));
    this.#boards = limits.all === undefined ? ofTypes : [...ofTypes, new SeatBoard(undefined, limits.all)];
    const { bus, names, runtime } = deps;
    const onRoom = () => this.#roomChanged();
    this.#store = new SeatStore({ bus, names, runtime, boards: this.#boards, onRoom });
    this.#care = new SeatCare(deps, this.#store);
  }

  async start(): Promise<void> {
    if (this.#boards.length === 0) return;
    const unfollow = this.#care.follow();
    this.#stops.push({ stop: async () => unfollow() }, await this.#store.follow());
  }

  stop = once(async () => {
    this.#stopped = true;
    for (const { timer } of this.#wanted.values()) timer?.cancel();
    this.#wanted.clear();
    await Promise.all(this.#stops.map((one) => one.stop()));
  });

  /** Calls the listener when a quota that was reached has a free seat again. */
  onRoom(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** How many more sessions may be taken, as far as is known; infinite without a quota. */
  room(type: string): number {
    return Math.min(...this.#boardsOf(type).map((board) => board.room));
  }

  figures(): WorkerInfo["quotas"] {
    if (this.#boards.length === 0) return undefined;
    const types = this.#boards.flatMap(({ type, used, max }) =>
      type === undefined ? [] : [[type, { used, max }]],
    );
    const all = this.#boards.find(({ type }) => type === undefined);
    return { types: Object.fromEntries(types), ...(all && { all: { used: all.used, max: all.max } }) };
  }

  /** Names the quota that stands in the way, or did a moment ago. */
  sentence(type: string): string {
    const boards = this.#boardsOf(type);
    const board = boards.find(({ room }) => room === 0) ?? boards[0];
    return board ? sentenceOf(board) : `type ${type} has no quota`;
  }

  /** True if any worker has a seat for this session. */
  isSeated({ type, sessionId }: QuotaClaim): boolean {
    return this.#boardsOf(type).some((board) => board.hasOneFor(sessionId));
  }

  /** True if this worker has a seat for this session: of a lease it holds, or from a write without an answer. */
  isSeatedHere({ type, sessionId }: QuotaClaim): boolean {
    const { workerId } = this.#deps.identity;
    return this.#boardsOf(type).some((board) => board.seatOf({ sessionId }, workerId) !== undefined);
  }

  /**
   * The reason why the session may not be taken now; undefined if it may. Sends no request while there is
   * room.
   */
  async reached(claim: QuotaClaim): Promise<string | undefined> {
    for (const board of this.#boardsOf(claim.type)) {
      if (this.#hasRoom(board, claim)) continue;
      await this.#care.clearOver(board);
      if (!this.#hasRoom(board, claim)) return this.#refuse(board);
    }
    return undefined;
  }

  /** Throws a transient fault if the server did not answer. */
  async take(claim: QuotaClaim, leaseTtlMs: number): Promise<Seated> {
    const boards = this.#boardsOf(claim.type);
    if (boards.length === 0) return { kind: "seated", seats: noSeats };
    const beganAt = this.#deps.runtime.clock.monotonic();
    const { instanceId, sessionId, attachment } = claim;
    const session = { instanceId, sessionId, attachment };
    const value: QuotaSeat = { v: 1, holder: this.#deps.identity.workerId, session, leaseTtlMs };
    const taken: Taken[] = [];
    try {
      for (const board of boards) {
        const one = await this.#takeOf(board, claim, value);
        if (one === undefined) {
          await this.#giveBack(taken);
          return { kind: "reached", why: this.#refuse(board) };
        }
        taken.push(one);
      }
    } catch (error) {
      await this.#giveBack(taken);
      throw error;
    }
    const seats: Seats = {
      stillOurs: () => this.#stillOurs(taken, value, beganAt),
      giveBack: () => this.#giveBack(taken),
    };
    return { kind: "seated", seats };
  }

  async #takeOf(board: SeatBoard, claim: QuotaClaim, value: QuotaSeat): Promise<Taken | undefined> {
    // Ends: a conflict means that another worker succeeded, or it brings an old view up to date.
    for (;;) {
      const seat = board.seatOf(claim, value.holder) ?? board.anyFree(this.#deps.runtime.random);
      if (seat === undefined) return undefined;
      const done = board.trying(seat);
      try {
        const revision = await this.#store.take(board, seat, value, board.revisionOf(seat));
        if (revision !== undefined) return { board, seat, revision };
      } finally {
        done();
      }
    }
  }

  async #stillOurs(taken: Taken[], value: QuotaSeat, beganAt: number): Promise<boolean> {
    const { leaseTtlMs } = value;
    const safeUntil = beganAt + leaseTtlMs - leaseTiming(leaseTtlMs).marginMs;
    if (this.#deps.runtime.clock.monotonic() < safeUntil) return true;
    try {
      for (const one of taken) {
        const revision = await this.#store.take(one.board, one.seat, value, one.revision);
        if (revision === undefined) return false;
        one.revision = revision;
      }
      return true;
    } catch (error) {
      this.#fault(error);
      return false; // unknown: treat the seat as lost
    }
  }

  /**
   * A seat that is not given back because of an error is cleared by the next worker that needs it (QUOTA-2).
   */
  async #giveBack(taken: readonly Taken[]): Promise<void> {
    await Promise.all(
      taken.map(({ board, seat, revision }) =>
        this.#store.clear(board, seat, revision).catch((error: unknown) => this.#fault(error)),
      ),
    );
  }

  #boardsOf(type: string): readonly SeatBoard[] {
    return this.#boards.filter((board) => board.type === type || board.type === undefined);
  }

  #hasRoom(board: SeatBoard, claim: QuotaClaim): boolean {
    return board.room > 0 || board.seatOf(claim, this.#deps.identity.workerId) !== undefined;
  }

  #refuse(board: SeatBoard): string {
    const { clock } = this.#deps.runtime;
    const known = this.#wanted.get(board);
    // The register shows people why a session waits.
    if (!known) this.#deps.loadChanged();
    this.#wanted.set(board, {
      until: clock.monotonic() + 2 * this.#timing.restMaxMs,
      timer: known?.timer,
    });
    if (!known?.timer) this.#arm(board);
    return sentenceOf(board);
  }

  /** While a claim waits for a seat, checks for dead holders as soon as one could have died. */
  #arm(board: SeatBoard): void {
    const wanted = this.#wanted.get(board);
    if (!wanted || this.#stopped) return;
    const { clock } = this.#deps.runtime;
    const inMs = Math.min(latestMs, Math.max(soonestMs, board.nextLookAt() - clock.monotonic()));
    wanted.timer = clock.after(inMs, () => void this.#look(board));
  }

  async #look(board: SeatBoard): Promise<void> {
    const wanted = this.#wanted.get(board);
    if (!wanted || wanted.until <= this.#deps.runtime.clock.monotonic()) {
      this.#wanted.delete(board);
      return;
    }
    await this.#care.clearOver(board).catch((error: unknown) => this.#fault(error));
    this.#arm(board);
  }

  #roomChanged(): void {
    for (const listener of this.#listeners) listener();
  }

  #fault(error: unknown): void {
    if (this.#stopped) return;
    announceFault(this.#deps.runtime, "quotas", error);
  }
}
