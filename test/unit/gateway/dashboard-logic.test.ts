/** What the dashboard works out from a history, without a browser. */
import { describe, expect, it } from "vitest";
import { pictures } from "../../../services/gateway/dashboard/screenshots/pictures.ts";
import { exampleValue, fieldKind, firstValue } from "../../../services/gateway/dashboard/src/form/schema.ts";
import { bytes, duration, wallTime } from "../../../services/gateway/dashboard/src/format.ts";
import { importedPage, readHistoryFile } from "../../../services/gateway/dashboard/src/history/import.ts";
import { pendingWork } from "../../../services/gateway/dashboard/src/history/pending.ts";
import { routeOf, routes } from "../../../services/gateway/dashboard/src/routes.ts";
import {
  layout,
  ownerColours,
  slices,
  ticks,
} from "../../../services/gateway/dashboard/src/timeline/layout.ts";
import type { DatedEvent } from "../../../services/gateway/routes/history.ts";
import { foldTimeline } from "../../../shared/timeline/index.ts";
import { longHistory, reclaimedHistory } from "../../support/gateway/demo-world.ts";

type Turn = { at: number; events: Record<string, unknown>[] };

function dated(turns: Turn[]): DatedEvent[] {
  let id = 0;
  return turns.flatMap(({ at, events }) =>
    events.map((event) => ({ at, event: { id: ++id, ...event } }) as unknown as DatedEvent),
  );
}

describe("a history as people see it", () => {
  it("has a session's owners one after the other, with the loss and the reclaim between", () => {
    const { sessions, work, received } = foldTimeline(dated(reclaimedHistory(0, "s1")));
    const [session] = sessions;
    expect(session?.segments.map(({ phase, workerId }) => `${phase} ${workerId ?? ""}`.trim())).toEqual([
      "waiting",
      "starting worker-a-k3x9",
      "held worker-a-k3x9",
      "waiting",
      "starting worker-b-p0q2",
      "held worker-b-p0q2",
    ]);
    expect(session?.marks.map(({ kind }) => kind)).toEqual(["lost", "reclaimed"]);
    for (const [index, segment] of (session?.segments ?? []).entries()) {
      expect(segment.to ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(segment.from);
      const next = session?.segments[index + 1];
      if (next) expect(segment.to).toBeLessThanOrEqual(next.from);
    }
    expect(work.filter(({ kind }) => kind === "call")).toHaveLength(17);
    expect(work.find(({ name }) => name === "fetch-more")).toMatchObject({
      state: "completed",
      attempts: [{ error: { code: "ECONNRESET", message: "socket hang up" } }],
    });
    expect(received).toEqual([{ kind: "signal", id: expect.any(Number), at: 9300, name: "approve" }]);
  });

  it("ends what is open when the instance ends", () => {
    const turns = [
      ...reclaimedHistory(0, "s1"),
      { at: 20_000, events: [{ kind: "instance.completed", output: { json: 1 } }] },
    ];
    const model = foldTimeline(dated(turns));
    expect(model.ended).toBe(true);
    expect(model.sessions[0]).toMatchObject({ to: 20_000 });
    expect(model.sessions[0]?.segments.at(-1)?.to).toBe(20_000);
  });

  it("has a lent member from the lending to the giving back", () => {
    const on = { attachment: 1, epoch: 9, workerId: "w", nodeId: "w", host: "h", resourceId: "r" };
    const member = { sessionId: "p-m1", type: "ml", phase: { kind: "active", on } };
    const model = foldTimeline(
      dated([
        { at: 1, events: [{ kind: "instance.started", name: "x", input: { json: 1 } }] },
        { at: 2, events: [{ kind: "pool.joined", poolId: "p", pool: { type: "ml", min: 1, max: 1 } }] },
        { at: 5, events: [{ kind: "pool.lent", of: 2, member }] },
        { at: 9, events: [{ kind: "pool.left", poolId: "p", of: 2 }] },
      ]),
    );
    expect(model.sessions).toMatchObject([
      { sessionId: "p-m1", from: 5, to: 9, segments: [{ phase: "held", from: 5, to: 9, workerId: "w" }] },
    ]);
    expect(model.sessions[0]?.marks.map(({ text }) => text)).toEqual(["given back"]);
  });

  it("takes over sessions carried from the execution before", () => {
    const on = { attachment: 3, epoch: 9, workerId: "w", nodeId: "w", host: "h", resourceId: "r" };
    const carried = {
      sessions: [{ sessionId: "kept", type: "ml", phase: { kind: "active", on } }],
      signals: [],
    };
    const model = foldTimeline(
      dated([{ at: 5, events: [{ kind: "instance.started", name: "x", input: { json: 1 }, carried }] }]),
    );
    expect(model.sessions[0]?.segments).toEqual([
      { phase: "held", from: 5, to: undefined, workerId: "w", epoch: 9, attachment: 3 },
    ]);
  });
});

describe("pending work says why", () => {
  const scheduled = (target: object) => [
    { at: 0, events: [{ kind: "instance.started", name: "x", input: { json: 1 } }] },
    {
      at: 10,
      events: [
        { kind: "activity.scheduled", name: "fetch", input: { json: 1 }, target, retry: {}, timeouts: {} },
      ],
    },
  ];
  const why = (turns: Turn[], workers: object[] = [], sessions: object[] = [], now = 100) =>
    pendingWork({
      model: foldTimeline(dated(turns)),
      workers: workers as never,
      sessions: sessions as never,
      now,
    }).map((pending) => pending.why);
  const queue = { kind: "queue", queue: "default" };
  const worker = (used: number) => ({
    activities: [{ queue: "default", name: "fetch" }],
    slots: { activities: { used, max: 4 } },
  });

  it("are not guessed before sessions and workers are known", () => {
    const unknown = { sessions: undefined, workers: undefined, now: 100 };
    const [pending] = pendingWork({ model: foldTimeline(dated(scheduled(queue))), ...unknown });
    expect(pending).toMatchObject({ why: "…", troubled: false });
  });

  it("for activities: nobody serves, all busy, handed out, retried later", () => {
    expect(why(scheduled(queue))).toEqual(["no worker runs fetch on queue default"]);
    expect(why(scheduled(queue), [worker(4)])).toEqual(["the only worker of queue default is busy"]);
    expect(why(scheduled(queue), [worker(4), worker(4)])).toEqual([
      "all 2 workers of queue default are busy",
    ]);
    expect(why(scheduled(queue), [worker(1)])).toEqual(["handed to queue default (1 serving)"]);
    const failed = {
      at: 50,
      events: [
        {
          kind: "activity.attempt_failed",
          of: 2,
          attempt: 1,
          error: { code: "E", message: "no", retryable: true },
          retryAt: 60_100,
        },
      ],
    };
    expect(why([...scheduled(queue), failed], [worker(1)])).toEqual([
      "attempt 1 failed: no (E); next in 1 min",
    ]);
    const started = { at: 50, events: [{ kind: "activity.started", of: 2, attempt: 1, workerId: "w1" }] };
    const w1 = { ...worker(1), workerId: "w1" };
    expect(why([...scheduled(queue), started], [w1])).toEqual(["runs on w1"]);
    expect(why([...scheduled(queue), started], [{ ...w1, workerId: "w2" }])).toEqual([
      "began on w1, which is gone; another worker runs it again",
    ]);
  });

  it("for calls: the session's state", () => {
    const call = scheduled({ kind: "session", sessionId: "s", call: true });
    expect(why(call, [], [{ sessionId: "s", phase: "opening" }])).toEqual(["session s waits for a worker"]);
    const lease = { renewedAt: 90, ttlMs: 5000, holder: "w" };
    expect(why(call, [], [{ sessionId: "s", phase: "active", workerId: "w", epoch: 3, lease }])).toEqual([
      "on w (epoch 3)",
    ]);
    expect(
      why(call, [], [{ sessionId: "s", phase: "active", workerId: "w", epoch: 3, lease }], 9_000),
    ).toEqual(["w does not renew its lease"]);
  });

  it("for timers, also those that are late", () => {
    const timer = (fireAt: number) => [
      {
        at: 0,
        events: [
          { kind: "instance.started", name: "x", input: { json: 1 } },
          { kind: "timer.created", fireAt },
        ],
      },
    ];
    expect(why(timer(5_100))).toEqual(["fires in 5.0 s"]);
    expect(why(timer(0), [], [], 60_000)).toEqual(["should have fired 1 min ago"]);
  });
});

describe("the timeline's layout", () => {
  it("puts what runs one after another into one row, and what runs together into several", () => {
    const { rows, hidden } = layout(foldTimeline(dated(longHistory(0, 80))));
    expect(rows).toHaveLength(8);
    expect(hidden).toBe(0);
    for (const row of rows) {
      if (row.kind !== "bars") throw new Error("only bars here");
      for (const [index, bar] of row.bars.entries()) {
        const next = row.bars[index + 1];
        if (next) expect(bar.to ?? 0).toBeLessThanOrEqual(next.from);
      }
    }
  });

  it("draws a bounded number of blocks however many bars there are, and only those in view", () => {
    const [row] = layout(foldTimeline(dated(longHistory(0, 40_000)))).rows;
    if (row?.kind !== "bars") throw new Error("bars expected");
    const whole = slices(row.bars, { from: 0, to: 500_000, width: 900, now: 500_000 });
    expect(row.bars.length).toBe(5_000);
    expect(whole.length).toBeLessThanOrEqual(301);
    expect(whole.reduce((sum, slice) => sum + slice.merged, 0)).toBe(5_000);
    const part = slices(row.bars, { from: 100_000, to: 101_000, width: 900, now: 500_000 });
    expect(part.length).toBeGreaterThanOrEqual(10);
    expect(part.length).toBeLessThanOrEqual(12);
    expect(part.every(({ merged }) => merged === 1)).toBe(true);
  });

  it("gives neighbours different colours and the axis round steps", () => {
    const colours = ownerColours(foldTimeline(dated(reclaimedHistory(0, "s1"))), 8);
    expect([...colours.values()]).toEqual([0, 1]);
    expect(ticks(0, 10_000, 8)).toEqual([0, 2000, 4000, 6000, 8000, 10_000]);
  });

  it("leaves out what has no room and says how much", () => {
    const start = { at: 0, events: [{ kind: "instance.started", name: "x", input: { json: 1 } }] };
    const many = {
      at: 1,
      events: Array.from({ length: 100 }, () => ({ kind: "timer.created", fireAt: 10 })),
    };
    const { rows, hidden } = layout(foldTimeline(dated([start, many])));
    expect(rows).toHaveLength(40);
    expect(hidden).toBe(60);
  });
});

describe("a history file", () => {
  it("is taken as downloaded or as the command line prints it, and refused otherwise", () => {
    const events = dated(reclaimedHistory(0, "s1"));
    const commits = events.map(({ at, event }) => ({ execution: 1, at, instanceId: "i", events: [event] }));
    const file = readHistoryFile(
      JSON.stringify({ format: "holdfast-history", v: 1, instanceId: "i", commits }),
    );
    expect(importedPage(file)).toMatchObject({ execution: 1, total: events.length });
    const flat = readHistoryFile(
      JSON.stringify(events.map(({ at, event }) => ({ execution: 2, at, ...event }))),
    );
    expect(importedPage(flat)).toMatchObject({ execution: 2, total: events.length });
    expect(() => readHistoryFile("nope")).toThrow("not JSON");
    expect(() => readHistoryFile("{}")).toThrow('no "commits"');
    expect(() => readHistoryFile('[{"kind":1}]')).toThrow("not an event");
  });
});

describe("a form from a JSON Schema", () => {
  it("knows what to ask and begins with the smallest value that fits", () => {
    const schema = {
      type: "object",
      properties: {
        name: { type: "string" },
        size: { type: "integer", minimum: 2 },
        mode: { enum: ["a", "b"] },
        tags: { type: "array", items: { type: "string" } },
        free: {},
        rest: { type: "boolean" },
      },
      required: ["name", "size", "mode", "tags", "free"],
    };
    expect(firstValue(schema)).toEqual({ name: "", size: 2, mode: "a", tags: [], free: null });
    expect(fieldKind({}).kind).toBe("json");
    expect(fieldKind({ type: "array", items: {} }).kind).toBe("json");
    expect(fieldKind({ const: 4 })).toEqual({ kind: "choice", options: [4] });
  });
});

describe("an example to start with", () => {
  it("has what is required and nothing else, with a word for text", () => {
    expect(
      exampleValue({
        type: "object",
        properties: {
          name: { type: "string" },
          size: { type: "integer", minimum: 3 },
          inner: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
          note: { type: "string" },
        },
        required: ["name", "size", "inner"],
      }),
    ).toEqual({ name: "you", size: 3, inner: { who: "you" } });
    expect(exampleValue(undefined)).toBe(null);
    expect(exampleValue({ type: "string", default: "x" })).toBe("x");
  });
});

describe("numbers for people", () => {
  it("are short", () => {
    expect([0.4, 12, 3200, 64_000, 3_700_000].map((ms) => duration(ms))).toEqual([
      "<1 ms",
      "12 ms",
      "3.2 s",
      "1 min 4 s",
      "1 h 1 min",
    ]);
    expect([900, 2048, 5_000_000].map(bytes)).toEqual(["900 B", "2.0 KiB", "4.8 MiB"]);
  });
});

it("shows a chosen time as exact as it is, on the wall it is meant for", () => {
  const at = Date.UTC(2026, 10, 20, 3, 30);
  expect(wallTime(at, "Europe/Berlin")).toMatch(/2026.*04:30$/);
  expect(wallTime(at + 5_000, "UTC")).toMatch(/03:30:05$/);
  expect(wallTime(at + 5_250, "UTC")).toMatch(/03:30:05.250$/);
  expect(wallTime(at, "Mars/Olympus_Mons")).toContain("2026");
});

it("finds the page of an address, with the title of its tab", () => {
  expect(routeOf("/")).toMatchObject({ pattern: "/", title: "Holdfast" });
  expect(routeOf("/sessions/")).toMatchObject({ pattern: "/sessions", title: "Sessions · Holdfast" });
  expect(routeOf("/sessions/a%2Fb")).toEqual({
    pattern: "/sessions/:id",
    params: { id: "a/b" },
    title: "a/b · Session · Holdfast",
  });
  expect(routeOf("/sessions/%")).toBeUndefined();
  expect(routeOf("/sessions/a/b")).toBeUndefined();
});

it("has a picture of every page", () => {
  const pictured = pictures({ keyedSession: "k", worker: "w" }).map(
    ([, path]) => routeOf(path.split("?")[0] ?? "")?.pattern,
  );
  expect(routes.map(({ pattern }) => pattern).filter((one) => !pictured.includes(one))).toEqual([]);
});
