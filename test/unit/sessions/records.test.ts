import { describe, expect, test } from "vitest";
import {
  Attachment,
  type SessionPhase,
  SessionRecord,
  SessionState,
  type SessionState as State,
} from "../../../schemas/index.ts";
import { recordOf } from "../../../shared/sessions/records.ts";

const on = (attachment: number, epoch: number, workerId = "w1") =>
  Attachment.parse({ attachment, epoch, workerId, nodeId: "n1", host: "h1", resourceId: "r1" });

const state = (phase: SessionPhase, attachments = 1): State =>
  SessionState.parse({
    sessionId: "s",
    owner: "i1",
    type: "model",
    options: {
      creationTimeoutMs: 30_000,
      onLost: "reclaim",
      maxAutoRetries: 3,
      maxInitAttempts: 3,
      requires: { tags: ["gpu"], resources: { vram: 2 } },
      lazy: false,
      metadata: { team: "a" },
      leaseTtlMs: 3000,
    },
    openedAt: 1000,
    attachments,
    initFailures: 0,
    phase,
  });

const opening: SessionPhase = { kind: "opening", attachment: 1, deadlineAt: 31_000 };
const claimed: SessionPhase = { kind: "claimed", on: on(1, 7), deadlineAt: 31_000 };
const active: SessionPhase = { kind: "active", on: on(1, 7) };
const lost: SessionPhase = { kind: "lost", on: on(1, 7), reason: "expired", detail: "its lease expired" };

/** One state after the other, a second apart, as the orchestrator writes them. */
const written = (...states: State[]): SessionRecord =>
  states.reduce<SessionRecord | undefined>(
    (before, next, i) => recordOf(next, before, (i + 1) * 1000),
    undefined,
  ) ?? SessionRecord.parse(undefined);

describe("the record of a session", () => {
  test("says who it belongs to and what it needs", () => {
    expect(SessionRecord.parse(written(state(opening)))).toEqual({
      v: 1,
      sessionId: "s",
      instanceId: "i1",
      type: "model",
      phase: "opening",
      attachment: 1,
      requires: { tags: ["gpu"], resources: { vram: 2 } },
      metadata: { team: "a" },
      openedAt: 1000,
      updatedAt: 1000,
      deadlineAt: 31_000,
      leaseTtlMs: 3000,
      owners: [],
    });
  });

  test("knows its holder since the claim", () => {
    const record = SessionRecord.parse(written(state(opening), state(claimed), state(active)));
    expect(record).toMatchObject({
      phase: "active",
      epoch: 7,
      workerId: "w1",
      claimedAt: 2000,
      resourceId: "r1",
    });
    expect(record.deadlineAt).toBeUndefined();
    expect(record.owners).toEqual([{ workerId: "w1", epoch: 7, from: 2000 }]);
  });

  test("says how long init took, of the holder it is about", () => {
    const inited = (phase: SessionPhase, initMs?: number): State => ({ ...state(phase), initMs });
    expect(written(inited(claimed), inited(active, 1200)).initMs).toBe(1200);
    const rebuilding: SessionPhase = { kind: "rebuilding", on: on(2, 9), of: 5 };
    expect(written(inited(rebuilding, 800)).initMs).toBe(800);
    const next: SessionPhase = { kind: "claimed", on: on(2, 9), deadlineAt: 31_000 };
    expect(written(inited(active, 1200), inited(next, 1200)).initMs).toBeUndefined();
  });

  test("keeps the last loss and its past holders", () => {
    const next: SessionPhase = { kind: "active", on: on(2, 19, "w2") };
    const reopened: SessionPhase = { kind: "opening", attachment: 2, deadlineAt: 40_000 };
    const record = SessionRecord.parse(
      written(state(active), state(lost), state(reopened, 2), state(next, 2)),
    );
    expect(record.lost).toEqual({ reason: "expired", detail: "its lease expired", at: 2000 });
    expect(record.owners).toEqual([
      { workerId: "w1", epoch: 7, from: 1000, to: 2000, end: "expired" },
      { workerId: "w2", epoch: 19, from: 4000 },
    ]);
    expect(record).toMatchObject({ attachment: 2, epoch: 19, claimedAt: 4000 });
  });

  test("attached again without a word in between: the tenure before was replaced", () => {
    const again: SessionPhase = { kind: "active", on: on(2, 12) };
    expect(written(state(active), state(again, 2)).owners).toEqual([
      { workerId: "w1", epoch: 7, from: 1000, to: 2000, end: "replaced" },
      { workerId: "w1", epoch: 12, from: 2000 },
    ]);
  });

  test("the same state written twice changes nothing but the time", () => {
    for (const phase of [opening, claimed, active, lost]) {
      const once = written(state(phase));
      const twice = written(state(phase), state(phase));
      expect({ ...twice, updatedAt: 0 }).toEqual({ ...once, updatedAt: 0 });
    }
  });

  test("is bounded, however often it was lost", () => {
    const lives = Array.from({ length: 100 }, (_, i) =>
      state({ kind: "active", on: on(i + 1, i + 1) }, i + 1),
    );
    const { owners } = written(...lives);
    expect(owners).toHaveLength(20);
    expect(owners.at(-1)).toMatchObject({ epoch: 100 });
  });
});
