import { describe, expect, it } from "vitest";
import { HistoryEvent } from "../../../schemas/index.ts";
import { colours } from "../../../services/cli/terminal/paint.ts";
import { branchOf } from "../../../services/cli/watch/branch.ts";
import { NewEvents, newsLine } from "../../../services/cli/watch/event-lines.ts";
import { drawTree, type Tree } from "../../../services/cli/watch/tree.ts";
import type { HistoryEntry } from "../../../shared/sdk/index.ts";
import { reclaimedHistory } from "../../support/gateway/demo-world.ts";

const golden = (name: string) => `../../golden/cli/${name}.txt`;

/** Turns of events without ids, as a client reads them. */
function entries(turns: { at: number; events: Record<string, unknown>[] }[], execution = 1): HistoryEntry[] {
  let id = 0;
  return turns.flatMap(({ at, events }) =>
    events.map((event) => ({ execution, at, ...HistoryEvent.parse({ id: ++id, ...event }) })),
  );
}

const json = (value?: unknown) => ({ json: value });
const retry = { maxAttempts: 3, initialDelayMs: 100, maxDelayMs: 1000, factor: 2, nonRetryable: [] };
const scheduled = (name: string) => ({
  kind: "activity.scheduled",
  name,
  input: json(),
  target: { kind: "queue", queue: "default" },
  retry,
  timeouts: {},
});

const parent = entries([
  { at: 0, events: [{ kind: "instance.started", name: "checkout", input: json() }, scheduled("reserve")] },
  {
    at: 120,
    events: [
      { kind: "activity.completed", of: 2, output: json(1) },
      scheduled("charge"),
      { kind: "timer.created", fireAt: 60_000 },
      {
        kind: "child.scheduled",
        name: "ship",
        childId: "order-7-c1",
        input: json(),
        mode: "attached",
        grants: [],
      },
      {
        kind: "child.scheduled",
        name: "mail",
        childId: "order-7-c2",
        input: json(),
        mode: "detached",
        grants: [],
      },
      { kind: "status.set", status: json({ step: "paying" }) },
    ],
  },
  {
    at: 900,
    events: [
      {
        kind: "activity.attempt_failed",
        of: 4,
        attempt: 1,
        error: { code: "declined", message: "card\ndeclined", retryable: true },
        retryAt: 4_000,
      },
      { kind: "signal.received", name: "hurry", payload: json() },
    ],
  },
]);
const child = entries([
  { at: 130, events: [{ kind: "instance.started", name: "ship", input: json() }, scheduled("pack")] },
]);
const mail = entries([
  { at: 130, events: [{ kind: "instance.started", name: "mail", input: json() }] },
  {
    at: 200,
    events: [{ kind: "instance.failed", error: { code: "smtp", message: "no server", retryable: false } }],
  },
]);

const leaf = (id: string, history: HistoryEntry[]): Tree => ({
  branch: branchOf(id, history),
  children: new Map(),
});
const tree = (): Tree => ({
  branch: branchOf("order-7", parent),
  children: new Map([
    ["order-7-c1", leaf("order-7-c1", child)],
    ["order-7-c2", leaf("order-7-c2", mail)],
  ]),
});

describe("the tree of an instance", () => {
  it("shows what is under way, what waits and what is done, with its children", async () => {
    await expect(drawTree(tree(), { now: 2_000 })).toMatchFileSnapshot(golden("watch-tree"));
    await expect(drawTree(tree(), { now: 2_000, paint: colours })).toMatchFileSnapshot(
      golden("watch-tree-colours"),
    );
  });

  it("shows sessions with holder and epoch, and the calls on them", async () => {
    const history = entries(reclaimedHistory(0, "docs-s1"));
    const at = (count: number) => ({
      branch: branchOf("docs", history.slice(0, count)),
      children: new Map(),
    });
    const lost = history.findIndex(({ kind }) => kind === "session.lost") + 2;
    await expect(drawTree(at(lost), { now: 5_650, rows: 10 })).toMatchFileSnapshot(
      golden("watch-session-lost"),
    );
    await expect(drawTree(at(history.length), { now: 11_000 })).toMatchFileSnapshot(golden("watch-session"));
  });

  it("marks a loss, and who claimed the session anew, in the tree and in lines", () => {
    const history = entries(reclaimedHistory(0, "docs-s1"));
    const drawn = drawTree({ branch: branchOf("docs", history), children: new Map() }, { now: 11_000 });
    expect(drawn).toContain("claimed anew after a loss: lost by worker-a-k3x9 (expired)");
    const lines = history.map((entry) => newsLine({ instanceId: "docs", ...entry }));
    expect(lines.filter((line) => line.endsWith("✗ lost"))).toHaveLength(1);
    expect(lines.filter((line) => line.endsWith("↻ claimed anew"))).toHaveLength(1);
  });

  it("folds what is done until it fits, then cuts", () => {
    const rows = (n: number) => drawTree(tree(), { now: 2_000, rows: n }).split("\n");
    expect(rows(8)).toHaveLength(8);
    expect(rows(6)).toHaveLength(6);
    expect(rows(6).at(-1)).toMatch(/^… \d+ more lines$/);
    expect(rows(7).some((line) => line.includes("1 activity, 1 signal over"))).toBe(true);
  });

  it("keeps every line within the terminal, and control characters out of it", () => {
    for (const columns of [20, 40, 60]) {
      for (const line of drawTree(tree(), { now: 2_000, columns }).split("\n"))
        expect(line.length).toBeLessThanOrEqual(columns);
    }
    expect(drawTree(tree(), { now: 0 })).toContain("card declined (declined)");
  });

  it("is the tree of the latest execution, and ends with the instance", () => {
    const next: HistoryEntry[] = [
      ...parent,
      {
        execution: 2,
        at: 5_000,
        ...HistoryEvent.parse({
          id: 1,
          kind: "instance.started",
          name: "checkout",
          input: json(),
          carried: { signals: [], sessions: [], startedAt: 0 },
        }),
      },
    ];
    expect(drawTree({ branch: branchOf("order-7", next), children: new Map() }, { now: 6_000 })).toBe(
      "order-7  checkout  running  6.0 s  execution 2",
    );
    const over = [
      ...parent,
      {
        execution: 1,
        at: 9_000,
        ...HistoryEvent.parse({ id: 11, kind: "instance.terminated", reason: "enough" }),
      },
    ];
    const text = drawTree({ branch: branchOf("order-7", over), children: new Map() }, { now: 9_999 });
    expect(text).toMatch(/^order-7 {2}checkout {2}terminated {2}9\.0 s {2}enough/);
    expect(text).toContain("○ activity charge");
  });

  it("shows where a lent member is, its loss, and that it was given back", () => {
    const on = { attachment: 1, epoch: 9, workerId: "w1", nodeId: "n", host: "h", resourceId: "r" };
    const options = {
      ...{ creationTimeoutMs: 1, onLost: "reclaim", maxAutoRetries: 1, maxInitAttempts: 1 },
      ...{ requires: {}, lazy: false, metadata: {} },
    };
    const member = {
      ...{ sessionId: "p-m1", owner: "pool-p", type: "ml", options, openedAt: 0 },
      ...{ attachments: 1, initFailures: 0, phase: { kind: "active", on } },
    };
    const pool = { type: "ml", min: 1, max: 1, sharing: "exclusive" };
    const turns = [
      { at: 0, events: [{ kind: "instance.started", name: "x", input: json() }] },
      { at: 1, events: [{ kind: "pool.joined", poolId: "p", pool }] },
      { at: 2, events: [{ kind: "pool.lent", of: 2, member }] },
      { at: 3, events: [{ kind: "session.lost", sessionId: "p-m1", on, reason: "expired" }] },
      { at: 4, events: [{ kind: "pool.left", poolId: "p", of: 2 }] },
    ];
    const item = (upTo: number) => branchOf("i", entries(turns.slice(0, upTo)), undefined).items[0];
    expect(item(2)).toMatchObject({ kind: "pool", label: "p", standing: "open", note: "" });
    expect(item(3)).toMatchObject({ standing: "open", note: "p-m1 on w1" });
    expect(item(4)).toMatchObject({ standing: "failed", note: "lost by w1 (expired)" });
    expect(item(5)).toMatchObject({ standing: "done", to: 4 });
  });

  it("shows an activity that failed as waiting, and as running once its next attempt began", () => {
    const failed = { kind: "activity.attempt_failed", of: 2, attempt: 1, retryAt: 50 };
    const error = { code: "busy", message: "try later", retryable: true };
    const turns = [
      { at: 0, events: [{ kind: "instance.started", name: "x", input: json() }, scheduled("charge")] },
      { at: 9, events: [{ ...failed, error }] },
      { at: 50, events: [{ kind: "activity.started", of: 2, attempt: 2, workerId: "w2" }] },
    ];
    const item = (upTo: number) => branchOf("i", entries(turns.slice(0, upTo))).items[0];
    expect(item(2)).toMatchObject({
      standing: "waiting",
      dueAt: 50,
      note: "attempt 1 failed: try later (busy)",
    });
    expect(item(3)).toMatchObject({ standing: "open", note: "on w2" });
  });

  it("says that it is parked, which no event does", () => {
    const error = { code: "nondeterminism", message: "history has a timer", retryable: false };
    const branch = branchOf("order-7", parent, { status: "parked", error });
    expect(branch).toMatchObject({ status: "parked", note: "history has a timer (nondeterminism)" });
    expect(branchOf("new", [], { status: "pending", name: "checkout" })).toMatchObject({
      status: "pending",
      name: "checkout",
      items: [],
    });
  });
});

it("tells what is new once, in the order of time", () => {
  const news = new NewEvents();
  const first = news.since(new Map([["order-7", parent.slice(0, 3)]]));
  expect(first).toHaveLength(3);
  const second = news.since(
    new Map([
      ["order-7", parent],
      ["order-7-c1", child],
    ]),
  );
  expect(second.map(({ instanceId, at }) => [instanceId, at])).toEqual([
    ...Array.from({ length: 5 }, () => ["order-7", 120]),
    ["order-7-c1", 130],
    ["order-7-c1", 130],
    ["order-7", 900],
    ["order-7", 900],
  ]);
  expect(news.since(new Map([["order-7", parent]]))).toEqual([]);
  expect(newsLine(second[0] as never)).toBe(
    "1970-01-01 00:00:00.120  order-7  activity.scheduled  name=charge target=default",
  );
});
