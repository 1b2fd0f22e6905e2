import { expect, test } from "vitest";
import { Journal, JournalEntry } from "../../../shared/verify/journal.ts";
import { checkSessionJournal } from "../../../shared/verify/journal-laws.ts";

/** What the checker says of these calls, which ran on one attachment in this order. */
function said(...calls: { of: number; attempt?: number; ordered?: boolean }[]): string[] {
  const lines: string[] = [];
  const on = { kind: "call", sessionId: "s", epoch: 3, instanceId: "i", attempt: 1 };
  const journal = new Journal(calls.map((call) => JournalEntry.parse({ ...on, ...call })));
  const violation = (law: string, _instanceId: string | undefined, evidence: string) =>
    void lines.push(`${law} ${evidence}`);
  checkSessionJournal(journal, { violation } as never);
  return lines;
}

test("CALL-1: calls of a session run in the order in which they were asked for", () => {
  expect(said({ of: 1 }, { of: 2 }, { of: 3 })).toEqual([]);
  expect(said({ of: 1 }, { of: 3 }, { of: 2 })).toEqual([
    "CALL-1 call 2 ran after call 3 on s.3 (session.epoch)",
  ]);
});

test("CALL-1: a repeated call, and a call of a shared pool that comes from another member, run after later ones", () => {
  expect(said({ of: 2 }, { of: 1, attempt: 2 })).toEqual([]);
  expect(said({ of: 2, ordered: false }, { of: 3, ordered: false }, { of: 1, ordered: false })).toEqual([]);
});

test("CALL-1: an attempt runs once on an attachment, in a pool too", () => {
  const twice = ["CALL-1 attempt 1 of call 1 ran twice on s.3 (session.epoch)"];
  expect(said({ of: 1 }, { of: 1 })).toEqual(twice);
  expect(said({ of: 1, ordered: false }, { of: 2, ordered: false }, { of: 1, ordered: false })).toEqual(
    twice,
  );
});
