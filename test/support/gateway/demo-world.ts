/** Read models and histories as a small busy installation would have them, for looking at the dashboard. */
import {
  flowOrchestration,
  poolInstance,
  poolOrchestration,
  scheduleInstance,
  scheduleOrchestration,
} from "../../../schemas/index.ts";
import type { TestGateway } from "./gateway.ts";
import { hands, writeHistory } from "./gateway.ts";

type Turn = { at: number; events: Record<string, unknown>[] };

const options = {
  creationTimeoutMs: 30_000,
  onLost: "reclaim",
  maxAutoRetries: 3,
  maxInitAttempts: 3,
  requires: { tags: ["gpu"], resources: { vram: 2 } },
  lazy: false,
  metadata: {},
};
const retry = { maxAttempts: 3, initialDelayMs: 100, maxDelayMs: 1000, factor: 2, nonRetryable: [] };
const on = (workerId: string, attachment: number, epoch: number) => ({
  attachment,
  epoch,
  workerId,
  nodeId: workerId,
  host: "gpu-1",
  resourceId: `${workerId}/cuda:0`,
});
const json = (value: unknown) => ({ json: value });

/** A session that is lost and taken by another worker in the middle of its calls. */
export function reclaimedHistory(start: number, sessionId: string): Turn[] {
  const turns: Turn[] = [];
  let id = 0;
  const at = (ms: number, ...events: Record<string, unknown>[]): number => {
    turns.push({ at: start + ms, events });
    id += events.length;
    return id;
  };
  at(0, { kind: "instance.started", name: "classify-docs", input: json({ docs: ["a", "b", "c"] }) });
  at(2, {
    kind: "session.opened",
    sessionId,
    type: "ml-classifier",
    config: json({ model: "tiny-bert" }),
    options,
  });
  at(2, { kind: "session.requested", sessionId, attachment: 1, deadlineAt: start + 30_000, restore: false });
  at(40, { kind: "session.claimed", sessionId, on: on("worker-a-k3x9", 1, 118) });
  at(1300, {
    kind: "session.activated",
    sessionId,
    on: on("worker-a-k3x9", 1, 118),
    initMs: 1240,
    warm: false,
    restored: false,
  });
  const call = (from: number, to: number, worker: string, epoch: number) => {
    const of = at(from, {
      kind: "activity.scheduled",
      name: "classify",
      input: json("a very fine document"),
      target: { kind: "session", sessionId, call: true },
      retry,
      timeouts: {},
    });
    at(to, {
      kind: "activity.completed",
      of,
      output: json({ label: "positive", score: 0.98 }),
      workerId: worker,
      epoch,
    });
  };
  for (let i = 0; i < 8; i++) call(1320 + i * 260, 1320 + i * 260 + 180, "worker-a-k3x9", 118);
  const fetched = at(3300, {
    kind: "activity.scheduled",
    name: "fetch-more",
    input: json({ page: 2 }),
    target: { kind: "queue", queue: "default" },
    retry,
    timeouts: {},
  });
  at(3900, {
    kind: "activity.attempt_failed",
    of: fetched,
    attempt: 1,
    error: { code: "ECONNRESET", message: "socket hang up", retryable: true },
    retryAt: start + 4000,
  });
  at(4800, {
    kind: "activity.completed",
    of: fetched,
    output: json({ docs: 40 }),
    workerId: "worker-b-p0q2",
  });
  at(5600, { kind: "session.lost", sessionId, on: on("worker-a-k3x9", 1, 118), reason: "expired" });
  at(5600, {
    kind: "session.requested",
    sessionId,
    attachment: 2,
    deadlineAt: start + 36_000,
    restore: false,
  });
  at(5660, { kind: "session.claimed", sessionId, on: on("worker-b-p0q2", 2, 151) });
  at(6900, {
    kind: "session.activated",
    sessionId,
    on: on("worker-b-p0q2", 2, 151),
    initMs: 1230,
    warm: false,
    restored: false,
  });
  for (let i = 0; i < 9; i++) call(6920 + i * 240, 6920 + i * 240 + 170, "worker-b-p0q2", 151);
  const timer = at(9100, { kind: "timer.created", fireAt: start + 10_100 });
  at(9300, { kind: "signal.received", name: "approve", payload: json({ by: "ada" }) });
  at(10_110, { kind: "timer.fired", of: timer });
  return turns;
}

/** Many short activities, one after another in eight lanes. */
export function longHistory(start: number, activities: number): Turn[] {
  const turns: Turn[] = [
    { at: start, events: [{ kind: "instance.started", name: "crawl", input: json({ pages: activities }) }] },
  ];
  const perTurn = 8;
  let id = 1;
  for (let turn = 0; turn * perTurn < activities; turn++) {
    const scheduled = Array.from({ length: perTurn }, (_, i) => ({
      kind: "activity.scheduled",
      name: `fetch-${i}`,
      input: json({ page: turn * perTurn + i }),
      target: { kind: "queue", queue: "default" },
      retry,
      timeouts: {},
    }));
    const first = id + 1;
    id += perTurn;
    turns.push({ at: start + turn * 100, events: scheduled });
    turns.push({
      at: start + turn * 100 + 60,
      events: scheduled.map((_, i) =>
        (turn + i) % 97 === 0
          ? {
              kind: "activity.failed",
              of: first + i,
              error: { code: "http_500", message: "upstream failed", retryable: false },
            }
          : {
              kind: "activity.completed",
              of: first + i,
              output: json({ bytes: 1000 + i }),
              workerId: "worker-b-p0q2",
            },
      ),
    });
    id += perTurn;
  }
  return turns;
}

/** These are not renewed: long enough for the tests. */
export async function demoWorld(gateway: TestGateway, leaseMs = 600_000): Promise<void> {
  const put = hands(gateway.bus);
  const now = Date.now();
  const schema = {
    type: "object",
    properties: {
      docs: { type: "array", items: { type: "string" }, description: "Texts to label" },
      model: { type: "string", enum: ["tiny-bert", "distil-roberta"], default: "tiny-bert" },
      threshold: { type: "number", minimum: 0, maximum: 1 },
      dryRun: { type: "boolean" },
    },
    required: ["docs", "model"],
  };
  await put.service({
    service: "orchestrator",
    id: "o1",
    partitions: [0, 1],
    orchestrations: { "classify-docs": schema, "nightly-report": null },
  });
  await put.service({ service: "watcher", id: "t1", acting: true });
  await put.service({ service: "gateway", id: "g1" });
  for (let partition = 0; partition < 16; partition++) {
    await put.partition(partition, "o1");
  }
  await put.worker({
    workerId: "worker-a-k3x9",
    host: "gpu-1",
    slots: { activities: { used: 3, max: 8 }, calls: { used: 1, max: 8 }, sessions: { used: 2, max: 4 } },
    sessionTypes: ["ml-classifier"],
    sessions: [
      {
        sessionId: "docs-7f3a-s1",
        type: "ml-classifier",
        epoch: 118,
        calls: 412,
        queued: 0,
        running: 1,
        since: now - 600_000,
        snapshot: { hits: 388, misses: 24 },
      },
      {
        sessionId: "chat-ada",
        type: "ml-classifier",
        epoch: 140,
        calls: 17,
        queued: 2,
        running: 1,
        since: now - 40_000,
      },
    ],
  });
  await put.worker({
    workerId: "worker-b-p0q2",
    host: "gpu-2",
    slots: { activities: { used: 8, max: 8 }, calls: { used: 0, max: 8 }, sessions: { used: 1, max: 4 } },
    tags: ["gpu", "a100"],
    sessionTypes: ["ml-classifier"],
    resources: { total: { vram: 40 }, used: { vram: 2 } },
  });
  await put.worker({
    workerId: "worker-c-99ab",
    host: "cpu-7",
    tags: [],
    sessionTypes: [],
    device: "cpu",
    models: [],
    draining: true,
    resources: { total: {}, used: {} },
    slots: { activities: { used: 1, max: 16 }, calls: { used: 0, max: 4 }, sessions: { used: 0, max: 0 } },
  });
  const owner = (workerId: string, epoch: number, from: number, to?: number, end?: string) => ({
    workerId,
    epoch,
    from,
    ...(to === undefined ? {} : { to }),
    ...(end === undefined ? {} : { end }),
  });
  await put.session({
    sessionId: "docs-7f3a-s1",
    instanceId: "docs-7f3a",
    type: "ml-classifier",
    workerId: "worker-a-k3x9",
    epoch: 118,
    host: "gpu-1",
    openedAt: now - 620_000,
    initMs: 1240,
    owners: [owner("worker-a-k3x9", 118, now - 600_000)],
    requires: { tags: ["gpu"], resources: { vram: 2 } },
  });
  await put.session({
    sessionId: "docs-live-s1",
    instanceId: "docs-live",
    type: "ml-classifier",
    workerId: "worker-b-p0q2",
    epoch: 151,
    attachment: 2,
    host: "gpu-2",
    openedAt: now - 12_000,
    claimedAt: now - 5000,
    initMs: 1230,
    lost: { reason: "expired", at: now - 6000 },
    owners: [
      owner("worker-a-k3x9", 118, now - 11_000, now - 6000, "expired"),
      owner("worker-b-p0q2", 151, now - 5000),
    ],
    requires: { tags: ["gpu"], resources: { vram: 2 } },
  });
  await put.session({
    sessionId: "chat-ada",
    instanceId: "chat-ada",
    type: "ml-classifier",
    workerId: "worker-a-k3x9",
    epoch: 140,
    host: "gpu-1",
    openedAt: now - 50_000,
    initMs: 1310,
    owners: [owner("worker-a-k3x9", 140, now - 40_000)],
  });
  await put.session({
    sessionId: "whisper-1",
    instanceId: "transcribe-1",
    type: "whisper-large",
    phase: "opening",
    openedAt: now - 9000,
    updatedAt: now - 9000,
    deadlineAt: now + 21_000,
    requires: { tags: ["h100"], resources: { vram: 60 } },
  });
  await put.lease("docs-7f3a-s1", 1, "worker-a-k3x9", leaseMs);
  await put.lease("docs-live-s1", 2, "worker-b-p0q2", leaseMs);
  await put.lease("chat-ada", 1, "worker-a-k3x9", leaseMs);

  const start = now - 12_000;
  const { events } = await writeHistory(
    gateway.history,
    "docs-live",
    reclaimedHistory(start, "docs-live-s1"),
  );
  await put.instance({
    instanceId: "docs-live",
    name: "classify-docs",
    startedAt: start,
    events,
    sessions: ["docs-live-s1"],
    input: { json: { docs: ["a", "b", "c"], model: "tiny-bert" } },
    customStatus: { json: { labelled: 17, of: 40 } },
  });
  await keepers(put, now);
  const statuses = ["completed", "completed", "completed", "running", "failed", "completed", "cancelled"];
  for (let i = 0; i < 64; i++) {
    const status = statuses[i % statuses.length];
    const startedAt = now - i * 4300 - 2000;
    await put.instance({
      instanceId: `${i % 3 ? "docs" : "report"}-${(i * 7919 + 4096).toString(16)}`,
      name: i % 3 ? "classify-docs" : "nightly-report",
      status,
      startedAt,
      events: 10 + ((i * 37) % 400),
      ...(status === "running" ? {} : { endedAt: startedAt + 300 + ((i * 977) % 9000) }),
      ...(status === "failed"
        ? {
            error: {
              code: "session_lost",
              message: "session docs-1-s1 held by worker-a-k3x9 was lost (expired)",
              retryable: false,
            },
          }
        : {}),
    });
  }
  await put.dead({
    what: "inbox",
    id: "docs-77",
    subject: "inbox.3.docs-77.signal.approve",
    body: '{"by": <script>alert(1)</script>',
    code: "invalid_json",
    message: "not JSON: Unexpected token '<', at position 7",
  });
  await put.dead({
    what: "activity",
    id: "docs-12",
    subject: "activities.default.fetch-more",
    body: '{"v":1,"instanceId":"docs-12"}',
    code: "poisoned",
    message: "delivered 5 times without an answer",
  });
}

/** A schedule, a pool and a key with waiting starts, as their keepers tell of them. */
async function keepers(put: ReturnType<typeof hands>, now: number): Promise<void> {
  const hour = 3_600_000;
  const recent = [{ instanceId: "nightly-20261118T010000Z", at: now - 3 * hour }];
  await put.instance({
    instanceId: scheduleInstance("nightly"),
    name: scheduleOrchestration,
    input: {
      json: {
        spec: { orchestration: "nightly-report", cron: "0 2 * * *", timeZone: "Europe/Berlin" },
        cursor: now,
      },
    },
    customStatus: {
      json: { next: now + hour, runs: 31, skipped: 1, missed: 0, running: [], waiting: 0, recent },
    },
  });
  await put.instance({
    instanceId: poolInstance("ml-classifier-0f3a"),
    name: poolOrchestration,
    customStatus: { json: { type: "ml-classifier", min: 1, max: 4, members: 2, users: 3, declared: {} } },
  });
  await put.instance({
    instanceId: "flow-7",
    name: flowOrchestration,
    customStatus: { json: { waiting: [{ key: "customer-7", waiting: 20 }] } },
  });
}
