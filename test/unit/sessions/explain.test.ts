import { describe, expect, test } from "vitest";
import { SessionRecord, WorkerInfo } from "../../../schemas/index.ts";
import type { LeaseKeyState } from "../../../shared/leases/index.ts";
import { explain } from "../../../shared/sessions/explain.ts";

const now = 100_000;

const record = (fields: object): SessionRecord =>
  SessionRecord.parse({
    v: 1,
    sessionId: "s",
    instanceId: "i1",
    type: "model",
    phase: "active",
    attachment: 1,
    requires: { tags: [], resources: {} },
    metadata: {},
    openedAt: now - 60_000,
    updatedAt: now - 2000,
    owners: [],
    ...fields,
  });

const worker = (workerId: string, fields: object = {}): WorkerInfo =>
  WorkerInfo.parse({
    v: 1,
    workerId,
    nodeId: workerId,
    host: "h",
    pid: 1,
    resourceId: "r",
    buildId: "dev",
    startedAt: 0,
    seenAt: now,
    draining: false,
    tags: [],
    resources: { total: {}, used: {} },
    activities: [],
    sessionTypes: ["model"],
    slots: { activities: { used: 0, max: 1 }, calls: { used: 0, max: 1 }, sessions: { used: 4, max: 4 } },
    perType: {},
    warm: [],
    models: [],
    rssBytes: 1,
    eventLoopDelayMs: 1,
    sessions: [],
    ...fields,
  });

const held: LeaseKeyState = { kind: "held", revision: 9, at: now - 1200, claimId: "c", holder: "w3" };
const expired: LeaseKeyState = { kind: "expired", revision: 9, at: now - 3100 };
const free = {
  slots: { activities: { used: 0, max: 1 }, calls: { used: 0, max: 1 }, sessions: { used: 0, max: 4 } },
};

describe("why a session waits", () => {
  const waiting = { phase: "opening", deadlineAt: now + 26_900 };

  test("nobody has the tag", () => {
    const sentences = explain(
      record({ ...waiting, requires: { tags: ["gpu"], resources: {} } }),
      [worker("w1")],
      undefined,
      now,
    );
    expect(sentences[0]).toBe("has waited for a worker for 2.0 s (attachment 1), gives up in 26.9 s");
    expect(sentences[1]).toContain("no worker with tag gpu");
  });

  test("all are full", () => {
    const [, why] = explain(record(waiting), [worker("w1"), worker("w2")], undefined, now);
    expect(why).toContain("at capacity (8 of 8)");
  });

  describe("a quota is reached", () => {
    const quotas = (ofType: number, all: number) => ({
      quotas: { types: { model: { used: ofType, max: 4 } }, all: { used: all, max: 9 } },
    });
    const why = (...workers: WorkerInfo[]) => explain(record(waiting), workers, undefined, now)[1];

    test("of the type", () => {
      expect(why(worker("w1", { ...free, ...quotas(4, 5) }))).toBe(
        "type model is at 4 of 4 in the whole installation (maxTotal)",
      );
    });

    test("of all", () => {
      expect(why(worker("w1", { ...free, ...quotas(3, 9) }))).toBe(
        "all types together are at 9 of 9 in the whole installation (WORKER_MAX_TOTAL_SESSIONS)",
      );
    });

    test("as well as the workers' room", () => {
      expect(why(worker("w1", quotas(4, 5)))).toBe(
        "type model is at 4 of 4 in the whole installation (maxTotal); worker w1 for type model at capacity (4 of 4)",
      );
    });

    test("is asked after what no quota could help", () => {
      const tagged = record({ ...waiting, requires: { tags: ["gpu"], resources: {} } });
      const workers = [worker("w1", { ...free, ...quotas(4, 5) })];
      expect(explain(tagged, workers, undefined, now)[1]).toContain("no worker with tag gpu");
    });

    test("no more, as who registered last says", () => {
      const before = worker("w1", { ...free, ...quotas(4, 5), seenAt: now - 4000 });
      const later = worker("w2", { ...free, ...quotas(3, 4) });
      expect(why(before, later)).toContain("could take it");
      expect(why(worker("w1", free))).toContain("could take it");
    });
  });

  test("none runs", () => {
    expect(explain(record(waiting), [], undefined, now)[1]).toContain("no worker is running");
  });

  test("somebody could, and it was lost before", () => {
    const before = {
      lost: { reason: "expired", at: now - 5000 },
      owners: [{ workerId: "w9", epoch: 3, from: 1, to: 2 }],
    };
    const sentences = explain(record({ ...waiting, ...before }), [worker("w1", free)], undefined, now);
    expect(sentences.slice(1)).toEqual([
      "worker w1 could take it (only one)",
      "lost 5.0 s ago by w9, worker gone (expired)",
    ]);
  });
});

describe("how a held session is", () => {
  const holder = { workerId: "w3", epoch: 9, claimedAt: now - 90_000 };

  test("renewed, with its owner's load", () => {
    expect(explain(record(holder), [worker("w3")], held, now)).toEqual([
      "held by w3 (epoch 9) for 1 min 30 s",
      "lease renewed 1.2 s ago, its worker holds 4 of at most 4 sessions",
    ]);
  });

  test("defect 19: whose host others share, and waits while code of one of them blocks it", () => {
    const on = (sessionId: string, running: number, silentSince?: number) => ({
      ...{ sessionId, type: "model", epoch: 9, calls: 0, queued: 0, running, since: 0 },
      host: { id: "model-0", ...(silentSince !== undefined && { silentSince }) },
    });
    const said = (...sessions: object[]) =>
      explain(record(holder), [worker("w3", { sessions })], held, now).slice(2);
    expect(said(on("s", 0), on("b", 1), { ...on("c", 1), host: { id: "model-1" } })).toEqual([
      "shares host model-0 with b: while a call of one of them blocks, it waits",
    ]);
    expect(said(on("s", 0, now - 6200), on("b", 1, now - 6200), on("d", 0, now - 6200))).toEqual([
      "host model-0, which runs calls of b, has not answered for 6.2 s: code there blocks, and all its 3 sessions wait",
      "`host: { sessionsPerHost: 1 }` gives each session of the type its own",
    ]);
    expect(said(on("s", 1, now - 6200))).toEqual([
      "host model-0, which runs calls of s, has not answered for 6.2 s: code there blocks, and the session waits",
    ]);
    expect(said(on("s", 0))).toEqual([]);
    expect(said({ ...on("s", 0), host: undefined }), "inline, or of an older version").toEqual([]);
    expect(said(on("b", 1)), "not known there yet").toEqual([]);
  });

  test("expired, its worker gone", () => {
    expect(explain(record(holder), [], expired, now)[1]).toBe("lease expired 3.1 s ago, its worker is gone");
  });

  test.each(["claimed", "rebuilding"])("%s says what is going on", (phase) => {
    expect(explain(record({ ...holder, phase }), [worker("w3")], held, now)[0]).toContain("is running");
  });
});

const failure = { code: "x", message: "no memory", retryable: false };

test("every other phase has its sentence", () => {
  expect(explain(record({ phase: "parked", attachment: 0 }), [], undefined, now)[0]).toContain("lazy");
  expect(explain(record({ phase: "parked" }), [], undefined, now)[0]).toContain("idle: its holder parked it");
  expect(explain(record({ phase: "closed" }), [], undefined, now)).toEqual([
    "closed 2.0 s ago by its instance i1",
  ]);
  const over = { phase: "closed", lost: { reason: "expired", at: now - 5000 }, error: failure };
  expect(explain(record(over), [], undefined, now).slice(1)).toEqual([
    "had failed: no memory",
    "lost 5.0 s ago (expired)",
  ]);
  const failed = { phase: "failed", error: failure };
  expect(explain(record(failed), [], undefined, now)).toEqual(["failed 2.0 s ago: no memory"]);
  const owners = [
    { workerId: "w1", epoch: 3, from: 1, to: now - 5000, end: "expired" },
    { workerId: "w2", epoch: 9, from: now - 4000, to: now - 1000, end: "closed" },
  ];
  expect(explain(record({ ...over, owners }), [], undefined, now)).toContain(
    "lost 5.0 s ago by w1, worker gone (expired)",
  );
  const lost = { phase: "lost", lost: { reason: "aborted", detail: "by hand", at: now - 1000 } };
  expect(explain(record(lost), [], undefined, now)).toEqual(["lost 1.0 s ago (aborted: by hand)"]);
});
