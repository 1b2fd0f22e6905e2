import { describe, expect, test } from "vitest";
import { SessionRecord } from "../../../schemas/index.ts";
import { judgeLoss } from "../../../services/watcher/report-loss.ts";
import type { LeaseKeyState } from "../../../shared/leases/index.ts";
import { judge as judgeAll, mayBeHeld, type Suspect } from "../../../shared/sessions/reconcile.ts";

const record = (phase: string, attachment = 1): SessionRecord =>
  SessionRecord.parse({
    v: 1,
    sessionId: "s",
    instanceId: "i",
    type: "bare",
    phase,
    attachment,
    requires: { tags: [], resources: {} },
    metadata: {},
    openedAt: 0,
    updatedAt: 0,
    owners: [],
  });

const judge = (
  one: SessionRecord,
  lease: LeaseKeyState,
  before: Suspect | undefined,
  now: number,
  confirmAfterMs: number,
  isAsked = false,
) => judgeAll(one, { isAsked, lease }, before, now, confirmAfterMs);

const held: LeaseKeyState = { kind: "held", revision: 1, at: 0, claimId: "c", holder: "w" };
const expired: LeaseKeyState = { kind: "expired", revision: 1, at: 0 };
const released: LeaseKeyState = { kind: "released", revision: 1, at: 0 };
const none: LeaseKeyState = { kind: "none" };

describe("reconciling the register with the leases", () => {
  test("a held lease is fine", () => {
    expect(judge(record("active"), held, undefined, 0, 10)).toEqual({ kind: "fine" });
  });

  test.each(["opening", "claimed", "active", "rebuilding"])("%s: an expiry is believed at once", (phase) => {
    expect(judge(record(phase), expired, undefined, 0, 10)).toMatchObject({ kind: "lost" });
  });

  test.each([released, none])("given back or none: only when it is still so later", (look) => {
    const first = judge(record("active"), look, undefined, 100, 10);
    expect(first).toEqual({ kind: "suspect", suspect: { attachment: 1, since: 100 } });
    const suspect = { attachment: 1, since: 100 };
    expect(judge(record("active"), look, suspect, 109, 10)).toEqual({ kind: "suspect", suspect });
    expect(judge(record("active"), look, suspect, 110, 10)).toMatchObject({ kind: "lost" });
  });

  test("a suspicion about one attachment says nothing about the next", () => {
    const suspect = { attachment: 1, since: 0 };
    expect(judge(record("active", 2), none, suspect, 1000, 10)).toMatchObject({ kind: "suspect" });
  });

  test("nobody claimed it yet: its own instance's business", () => {
    expect(judge(record("opening"), none, { attachment: 1, since: 0 }, 1000, 10, true)).toEqual({
      kind: "fine",
    });
  });

  test("nobody claimed it and no queue has its claim: lost if it is still so later", () => {
    const suspect = { attachment: 1, since: 100 };
    expect(judge(record("opening"), none, undefined, 100, 10)).toEqual({ kind: "suspect", suspect });
    expect(judge(record("opening"), none, suspect, 110, 10)).toMatchObject({ kind: "lost" });
  });

  test("an opening whose key was given back is lost: nobody can claim that attachment any more", () => {
    const suspect = { attachment: 1, since: 100 };
    expect(judge(record("opening"), released, undefined, 100, 10)).toEqual({ kind: "suspect", suspect });
    expect(judge(record("opening"), released, suspect, 110, 10)).toMatchObject({ kind: "lost" });
  });

  test("only what may be held is looked at", () => {
    const phases = ["opening", "claimed", "active", "rebuilding", "parked", "lost", "failed", "closed"];
    expect(phases.filter((phase) => mayBeHeld(record(phase)))).toEqual(phases.slice(0, 4));
  });
});

describe("an expiry against the register", () => {
  test.each(["opening", "claimed", "active", "rebuilding"])("%s: told", (phase) => {
    expect(judgeLoss(record(phase), 1)).toEqual({ kind: "report" });
  });

  test.each(["parked", "lost", "failed", "closed"])("%s: over already", (phase) => {
    expect(judgeLoss(record(phase), 1)).toEqual({ kind: "skip", why: "over" });
  });

  test("of an attachment before the current one: nobody's loss", () => {
    expect(judgeLoss(record("active", 3), 2)).toEqual({ kind: "skip", why: "superseded" });
  });

  test("of an attachment the register has not heard of: told", () => {
    expect(judgeLoss(record("lost", 1), 2)).toEqual({ kind: "report" });
  });
});
