import { expect, it } from "vitest";
import { SessionRecord, type WorkerInfo } from "../../../schemas/index.ts";
import { TopSample } from "../../../services/cli/reference/shapes.ts";
import { colours, visibleLength } from "../../../services/cli/terminal/paint.ts";
import { type Sample, topSessions, topWorker } from "../../../services/cli/top/sample.ts";
import { topScreen } from "../../../services/cli/top/screen.ts";
import { Rates } from "../../../shared/wording/index.ts";

const now = 1_800_000_000_000;
const worker = (n: number, more: Partial<WorkerInfo> = {}): WorkerInfo =>
  ({
    workerId: `worker-${n}`,
    host: "gpu-1",
    draining: n === 2,
    slots: { activities: { used: n, max: 8 }, sessions: { used: 1, max: 4 }, calls: { used: 0, max: 8 } },
    rssBytes: 310_000_000,
    eventLoopDelayMs: 1.6,
    seenAt: now - 1_200,
    sessions: [],
    ...more,
  }) as unknown as WorkerInfo;

const record = (sessionId: string, more: Record<string, unknown> = {}): SessionRecord =>
  SessionRecord.parse({
    v: 1,
    sessionId,
    instanceId: "docs",
    type: "classifier",
    phase: "active",
    attachment: 1,
    epoch: 7,
    workerId: "worker-1",
    requires: { tags: [], resources: {} },
    metadata: {},
    openedAt: now - 60_000,
    updatedAt: now - 30_000,
    owners: [],
    ...more,
  });

function sample(sessions = 3): Sample {
  const held = {
    sessionId: "s2",
    type: "classifier",
    epoch: 7,
    calls: 12,
    queued: 2,
    running: 1,
    since: now - 45_000,
  };
  const workers = [worker(1, { sessions: [held] as never }), worker(2)];
  const records = [
    record("s1"),
    record("s2"),
    record("s3", { phase: "opening", workerId: undefined, epoch: undefined }),
    record("s4", { phase: "closed" }),
    ...Array.from({ length: sessions - 3 }, (_, i) => record(`more-${i}`)),
  ];
  return {
    at: now,
    instances: { pending: 1, running: 12, parked: 2, completed: 340, failed: 3, cancelled: 1, terminated: 1 },
    perSecond: { started: 12.4, completed: 11.9, failed: 0.1 },
    lostPerMinute: 1,
    services: { orchestrator: 2, watcher: 0, gateway: 1 },
    queues: [
      { name: "INBOX", waiting: 3, running: 1 },
      { name: "ACTIVITIES", waiting: 0, running: 12 },
    ],
    deadLetters: 4,
    workers: workers.map(topWorker),
    sessions: topSessions(records, workers),
  };
}

it("shows rates, queues, workers and sessions, the busy ones first", async () => {
  expect(TopSample.parse(JSON.parse(JSON.stringify(sample())))).toEqual(JSON.parse(JSON.stringify(sample())));
  await expect(topScreen(sample())).toMatchFileSnapshot("../../golden/cli/top.txt");
  await expect(topScreen(sample(), { paint: colours })).toMatchFileSnapshot(
    "../../golden/cli/top-colours.txt",
  );
});

it("fits into the terminal", () => {
  const text = topScreen(sample(100), { rows: 24, columns: 60, paint: colours });
  const lines = text.split("\n");
  expect(lines.length).toBeLessThanOrEqual(24);
  for (const line of lines) expect(visibleLength(line)).toBeLessThanOrEqual(60);
  expect(text).toMatch(/… \d+ more/);
});

it("says so where nobody is there", () => {
  const empty = topScreen({ ...sample(), workers: [], sessions: [] });
  expect(empty).toContain("no worker is alive");
  expect(empty).toContain("no sessions are open");
});

it("counts what happened lately", () => {
  const rates = new Rates();
  for (let at = 0; at < 20_000; at += 100) rates.add("completed", at, at);
  expect(rates.count("completed", 20_000, 10_000)).toBe(99);
  expect(rates.perSecond("completed", 20_000, 0)).toBe(9.9);
  expect(rates.perSecond("completed", 60_000, 0)).toBe(0);
  expect(rates.perSecond("started", 20_000, 0)).toBe(0);
  const young = new Rates();
  for (let i = 0; i < 6; i++) young.add("started", 1_000, 1_000);
  expect(young.perSecond("started", 2_000, 0)).toBe(3);
});
