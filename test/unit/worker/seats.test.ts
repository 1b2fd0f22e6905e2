import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { QuotaSeat } from "../../../schemas/index.ts";
import { SeatBoard } from "../../../services/worker/sessions/quotas/seat-board.ts";
import { judgeSeat } from "../../../services/worker/sessions/quotas/seat-care.ts";
import { leaseKeys } from "../../../shared/bus/index.ts";
import type { LeaseKeyState } from "../../../shared/leases/index.ts";
import { seededRandom } from "../../../shared/runtime/index.ts";

const seatOf = (sessionId: string, holder = "w1"): QuotaSeat =>
  QuotaSeat.parse({
    v: 1,
    holder,
    session: { instanceId: "i", sessionId, attachment: 1 },
    leaseTtlMs: 1000,
  });
const taken = (revision: number, sessionId: string, lookAt = 0) =>
  ({ kind: "taken", revision, at: 0, seat: seatOf(sessionId), lookAt }) as const;
const random = seededRandom(1);

describe("a board of seats", () => {
  it("never offers a seat that is taken or tried, nor more than there is room for", () => {
    const step = fc.record({
      seat: fc.integer({ min: 1, max: 6 }),
      act: fc.constantFrom("take", "free", "try"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const board = new SeatBoard("x", 4);
        const isTaken = new Set<number>();
        const isTried = new Map<number, () => void>();
        let revision = 0;
        for (const { seat, act } of steps) {
          if (act === "take") isTaken.add(seat);
          if (act === "free") isTaken.delete(seat);
          if (act === "try" && !isTried.has(seat) && !isTaken.has(seat))
            isTried.set(seat, board.trying(seat));
          if (act === "take") board.note(seat, taken(++revision, `s${seat}`));
          if (act === "free") board.note(seat, { kind: "free", revision: ++revision });
          expect(board.used).toBe(isTaken.size);
          expect(board.room).toBe(Math.max(0, 4 - isTaken.size - isTried.size));
          const offered = board.anyFree(random);
          if (offered === undefined) continue;
          expect(board.room).toBeGreaterThan(0);
          expect(offered).toBeLessThanOrEqual(4);
          expect(isTaken.has(offered) || isTried.has(offered)).toBe(false);
        }
      }),
    );
  });

  it("believes the later revision, in whatever order they come", () => {
    const board = new SeatBoard("x", 1);
    board.note(1, { kind: "free", revision: 8 });
    board.note(1, taken(7, "s"));
    expect(board.used).toBe(0);
    expect(board.revisionOf(1)).toBe(8);
  });

  it("says when there is room again, once", () => {
    const board = new SeatBoard("x", 2);
    board.note(1, taken(1, "a"));
    board.note(2, taken(2, "b"));
    expect(board.note(1, { kind: "free", revision: 3 })).toBe(true);
    expect(board.note(1, { kind: "free", revision: 3 })).toBe(false);
    expect(board.note(2, { kind: "free", revision: 4 })).toBe(false);
  });

  it("knows the seat a session has here already", () => {
    const board = new SeatBoard("x", 2);
    board.note(2, taken(1, "a"));
    expect(board.seatOf({ sessionId: seatOf("a").session.sessionId }, "w1")).toBe(2);
    expect(board.seatOf({ sessionId: seatOf("a").session.sessionId }, "w2")).toBeUndefined();
  });

  it("hands out what is due to be looked after once", () => {
    const board = new SeatBoard("x", 3);
    board.note(1, taken(1, "a", 50));
    board.note(2, taken(2, "b", 500));
    expect(board.nextLookAt()).toBe(50);
    expect(board.due(100, 1100).map(({ seat }) => seat)).toEqual([1]);
    expect(board.due(100, 1100)).toEqual([]);
    board.lookAgain(1, 1, 200);
    expect(board.nextLookAt()).toBe(200);
    board.lookAgain(1, 99, 0); // of another revision
    expect(board.nextLookAt()).toBe(200);
  });
});

describe("whose seat it still is", () => {
  const held = (holder: string | undefined): LeaseKeyState => ({
    kind: "held",
    revision: 1,
    at: 0,
    claimId: "c",
    holder,
  });
  it.each([
    ["its holder has the lease", held("w1"), "held"],
    ["a holder nobody can read", held(undefined), "held"],
    ["another won the session", held("w2"), "over"],
    ["given back", { kind: "released", revision: 2, at: 0 }, "over"],
    ["expired", { kind: "expired", revision: 2, at: 0 }, "expired"],
    ["nothing there", { kind: "none" }, "unclaimed"],
  ] satisfies [string, LeaseKeyState, string][])("%s", (_what, lease, verdict) => {
    expect(judgeSeat(seatOf("s"), lease)).toBe(verdict);
  });
});

it("keys of seats are told from all others", () => {
  expect(leaseKeys.parseSeat(leaseKeys.seat("a-b", 12))).toEqual({ type: "a-b", seat: 12 });
  expect(leaseKeys.parseSeat(leaseKeys.seat(undefined, 3))).toEqual({ type: undefined, seat: 3 });
  // A type may be called like a word of the key.
  expect(leaseKeys.parseSeat(leaseKeys.seat("all", 1))).toEqual({ type: "all", seat: 1 });
  for (const key of ["session.quota.1", "quota.all", "quota.type.1", "quota.all.x"]) {
    expect(leaseKeys.parseSeat(key)).toBeUndefined();
  }
  expect(leaseKeys.parseSession(leaseKeys.seat("a", 1))).toBeUndefined();
});
