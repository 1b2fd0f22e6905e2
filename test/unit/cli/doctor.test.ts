import { describe, expect, it } from "vitest";
import { ServiceInfo, SessionRecord, type WorkerInfo } from "../../../schemas/index.ts";
import { engineFindings } from "../../../services/cli/doctor/engine-findings.ts";
import type { Finding, Observations } from "../../../services/cli/doctor/observations.ts";
import { shownFindings } from "../../../services/cli/doctor/report.ts";
import { serverFindings } from "../../../services/cli/doctor/server-findings.ts";
import { Finding as FindingShape } from "../../../services/cli/reference/shapes.ts";

const now = 1_800_000_000_000;
const info = (name: string, more = {}) => ({
  name,
  subjects: [],
  messages: 0,
  bytes: 1_048_576,
  firstSeq: 0,
  lastSeq: 0,
  consumers: 1,
  replicas: 1,
  metadata: {},
  seenAt: now,
  ...more,
});
const service = (name: string, more: Record<string, unknown> = {}) => ({
  at: now,
  value: ServiceInfo.parse({
    v: 1,
    service: name,
    id: "x",
    host: "box",
    pid: 7,
    version: "0.1.0",
    startedAt: now,
    seenAt: now,
    ...more,
  }),
});
const worker = (more: Record<string, unknown> = {}) => ({
  at: now,
  value: {
    workerId: "worker-1",
    host: "box",
    seenAt: now,
    draining: false,
    eventLoopDelayMs: 2,
    resourceId: "box",
    buildId: "b",
    tags: [],
    resources: { total: {}, used: {} },
    activities: [{ queue: "default", name: "greet" }],
    sessionTypes: ["classifier"],
    perType: {},
    slots: { activities: { used: 0, max: 8 }, calls: { used: 0, max: 8 }, sessions: { used: 2, max: 4 } },
    warm: [],
    sessions: [],
    ...more,
  } as unknown as WorkerInfo,
});
const consumer = (pending: number, ackPending = 0) => ({
  stream: "S",
  name: "c",
  filter: ">",
  pending,
  ackPending,
  redelivered: 0,
  settledSeq: 0,
  handedOutSeq: 0,
});

const well: Observations = {
  now,
  version: "2.15.1",
  sync: "always",
  maxPayloadBytes: 1_048_576,
  account: { streams: 30, consumers: 33, bytes: 1_048_576 },
  clock: { aheadMs: 0.4, unsureMs: 1 },
  replicas: { wanted: 1 },
  write: { kind: "stored" },
  serverClocks: [],
  streams: [
    { name: "INBOX", info: info("INBOX") },
    { name: "DEAD", info: info("DEAD") },
  ],
  layout: "per-instance",
  maxOwnStreams: 2000,
  ownHistories: 3,
  partitions: { count: 2, held: [0, 1] },
  watcherLease: "held",
  queues: [{ name: "INBOX", messages: 1, consumers: [consumer(1, 2)] }],
  waitingActivities: [{ queue: "default", name: "greet", tasks: 1, oldestAt: now - 10 }],
  dead: { letters: 0, latest: undefined },
  parked: [],
  services: [service("orchestrator"), service("watcher", { acting: true })],
  workers: [worker()],
  fleet: { newest: 2, written: 2, versions: { "0.2.0": 3 }, heldBackBy: [] },
  openSessions: [],
};

const opening = (sessionId: string, more: Record<string, unknown> = {}) =>
  SessionRecord.parse({
    v: 1,
    sessionId,
    instanceId: "i",
    type: "whisper",
    phase: "opening",
    attachment: 1,
    requires: { tags: ["h100"], resources: {} },
    metadata: {},
    openedAt: now - 9_000,
    updatedAt: now - 9_000,
    owners: [],
    ...more,
  });

const sick: Observations = {
  ...well,
  sync: undefined,
  maxPayloadBytes: 65_536,
  account: { streams: 95, consumers: 10, bytes: 10 * 1_048_576, maxStreams: 100, maxBytes: 10 * 1_048_576 },
  clock: { aheadMs: 5_000, unsureMs: 1 },
  replicas: { wanted: 3 },
  ownHistories: 2000,
  partitions: { count: 16, held: [3] },
  watcherLease: "free",
  queues: [
    { name: "INBOX", messages: 20_000, consumers: [consumer(20_000)] },
    { name: "CLAIMS", messages: 2, consumers: [] },
  ],
  waitingActivities: [{ queue: "mails", name: "send", tasks: 12, oldestAt: now - 180_000 }],
  dead: { letters: 2, latest: { code: "invalid_json", message: "not JSON" } },
  parked: [
    {
      instanceId: "order-7",
      code: "nondeterminism",
      message: "history has a timer, the code issued a status",
    },
  ],
  services: [
    service("orchestrator"),
    service("watcher", { acting: false, version: "0.0.9", seenAt: now - 9_000 }),
  ],
  workers: [worker({ eventLoopDelayMs: 900 })],
  openSessions: [opening("w-1"), opening("w-2"), opening("young", { updatedAt: now - 100 })],
};

const examine = (seen: Observations): Finding[] => [...serverFindings(seen), ...engineFindings(seen)];
const verdicts = (seen: Observations) =>
  Object.fromEntries(
    examine(seen).map(({ code, what, verdict }) => [code === "queue" ? what : code, verdict]),
  );

describe("the doctor", () => {
  it("finds nothing wrong with what is well", async () => {
    expect(new Set(Object.values(verdicts(well)))).toEqual(new Set(["good"]));
    await expect(shownFindings(examine(well))).toMatchFileSnapshot("../../golden/cli/doctor-well.txt");
  });

  it("names everything that is wrong, and what to do about it", async () => {
    const findings = examine(sick);
    for (const finding of findings) {
      FindingShape.parse(finding);
      if (finding.verdict === "wrong") expect(finding.todo, finding.code).toBeDefined();
    }
    await expect(shownFindings(findings)).toMatchFileSnapshot("../../golden/cli/doctor-sick.txt");
    await expect(`${JSON.stringify({ ok: false, findings }, null, 2)}\n`).toMatchFileSnapshot(
      "../../golden/cli/doctor-sick-json.txt",
    );
  });

  it.each([
    ["nondeterminism", /deploy code.*holdfast replay p-1/],
    ["blob_missing", /restore.*holdfast terminate p-1/],
    ["history_unreadable", /repair its history/],
    ["nats_unavailable", /why NATS does not answer for its streams/],
    ["turn_failed", /holdfast get p-1/],
  ])("says what gets an instance going that is parked for %s", (code, todo) => {
    const findings = examine({ ...well, parked: [{ instanceId: "p-1", code, message: "so it is" }] });
    expect(findings.find((finding) => finding.code === "parked")?.todo).toMatch(todo);
  });

  it.each<[string, Partial<Observations>, string, Finding["verdict"] | undefined]>([
    ["no orchestrator", { services: [service("watcher", { acting: true })] }, "orchestrators", "wrong"],
    ["no watcher", { services: [service("orchestrator")] }, "watcher", "wrong"],
    ["no worker", { workers: [] }, "workers", "wrong"],
    [
      "a watcher that just took over",
      { services: [service("watcher", { acting: false })] },
      "watcher",
      "good",
    ],
    ["a partition without an owner", { partitions: { count: 2, held: [1] } }, "partitions", "wrong"],
    ["a clock that is a little off", { clock: { aheadMs: -600, unsureMs: 1 } }, "clock", "note"],
    [
      "a slow answer, which says little about the clock",
      { clock: { aheadMs: 900, unsureMs: 900 } },
      "clock",
      "good",
    ],
    [
      "an account at its limit",
      { account: { streams: 5, consumers: 1, bytes: 1, maxStreams: 5 } },
      "limits",
      "wrong",
    ],
    [
      "an account near its limit",
      { account: { streams: 9, consumers: 1, bytes: 1, maxStreams: 10 } },
      "limits",
      "note",
    ],
    ["too many own streams", { ownHistories: 2000 }, "histories", "note"],
    ["shared histories", { layout: "shared", ownHistories: 5000 }, "histories", "good"],
    [
      "two versions",
      { fleet: { newest: 2, written: 2, versions: { "1": 1, "2": 1 }, heldBackBy: [] } },
      "versions",
      "note",
    ],
    [
      "a generation held back",
      {
        fleet: {
          newest: 2,
          written: 1,
          versions: { "0.1.0": 1 },
          heldBackBy: [{ kind: "worker", id: "w", version: "0.1.0", generation: 1 }],
        },
      },
      "generation",
      "note",
    ],
    [
      "workers with different quotas",
      {
        workers: [
          worker({ quotas: { all: { used: 1, max: 8 }, types: { classifier: { used: 1, max: 4 } } } }),
          worker({ quotas: { all: { used: 1, max: 9 }, types: { classifier: { used: 1, max: 4 } } } }),
          worker(),
        ],
      },
      "quotas",
      "wrong",
    ],
    [
      "workers with the same quotas",
      {
        workers: [2, 1].map((used) =>
          worker({ quotas: { all: { used, max: 8 }, types: { classifier: { used, max: 4 } } } }),
        ),
      },
      "quotas",
      undefined,
    ],
    ["a worker whose clock is off", { workers: [worker({ seenAt: now + 60_000 })] }, "clocks", "wrong"],
    [
      "a missing stream",
      {
        streams: [
          { name: "INBOX", info: undefined },
          { name: "DEAD", info: info("DEAD") },
        ],
      },
      "streams",
      "wrong",
    ],
    ["a server never used", { streams: [{ name: "INBOX", info: undefined }] }, "streams", "wrong"],
  ])("%s", (_what, more, code, verdict) => {
    expect(verdicts({ ...well, ...more })[code]).toBe(verdict);
  });
});

describe("a store that takes no more", () => {
  const of = (seen: Partial<Observations>, code: string) =>
    examine({ ...well, ...seen }).find((f) => f.code === code);

  it("defect 22: is not called healthy when the server refuses what is written", () => {
    const write = { kind: "refused", why: "insufficient resources (NATS error 10023)" } as const;
    expect(of({ write }, "writes")).toMatchObject({
      verdict: "wrong",
      found: expect.stringContaining("insufficient resources"),
      todo: expect.stringMatching(/disk|max_file_store/),
    });
    expect(of({ write: { kind: "unanswered" } }, "writes")).toMatchObject({ verdict: "wrong" });
    expect(of({}, "writes")).toMatchObject({ verdict: "good" });
  });

  it("defect 22: names streams that are at a limit somebody set, and not those that are meant to roll over", () => {
    const streams = [
      { name: "INBOX", info: info("INBOX", { bytes: 95, maxBytes: 100 }) },
      { name: "CLAIMS", info: info("CLAIMS", { messages: 10, maxMessages: 10 }) },
      { name: "STREAMS", rolls: true, info: info("STREAMS", { bytes: 100, maxBytes: 100 }) },
    ];
    expect(of({ streams }, "stream_limits")).toMatchObject({
      verdict: "wrong",
      found: "INBOX 95 % of its bytes, CLAIMS 100 % of its messages",
    });
    expect(of({}, "stream_limits")).toBeUndefined();
  });
});

describe("copies", () => {
  const of = (wanted: number, ...copies: number[]) =>
    examine({
      ...well,
      replicas: { wanted },
      streams: copies.map((replicas, n) => ({ name: `S${n}`, info: info(`S${n}`, { replicas }) })),
    }).find(({ code }) => code === "replicas");

  it("defect 12: more than NATS_REPLICAS says are not called good", () => {
    expect(of(1, 3, 3)).toMatchObject({
      verdict: "note",
      found: expect.stringContaining("NATS_REPLICAS is 1"),
    });
    expect(of(1, 3, 1)).toMatchObject({ verdict: "wrong", found: "from 1 to 3: fewest of S1" });
    expect(of(3, 3, 3)).toMatchObject({ verdict: "good" });
  });
});

describe("what survives a power cut", () => {
  const of = (wanted: number, replicas: number) =>
    examine({
      ...well,
      sync: undefined,
      replicas: { wanted },
      streams: [{ name: "INBOX", info: info("INBOX", { replicas }) }],
    }).find(({ code }) => code === "disk");

  it("defect 24: needs `sync_interval: always`, however many copies there are", () => {
    expect(of(1, 1)?.todo).toMatch(/sync_interval: always/);
    expect(of(3, 3)?.todo).toMatch(/all of them at once.*sync_interval: always/);
    expect(of(3, 3)?.todo).not.toMatch(/three replicas survive/);
  });
});

it("defect 14: names servers of a cluster whose clocks are further apart than leases allow for", () => {
  const of = (...aheads: number[]) =>
    examine({
      ...well,
      serverClocks: aheads.map((aheadMs, n) => ({ server: `nats-${n}`, aheadMs, unsureMs: 2 })),
    }).find(({ code }) => code === "server_clocks");
  expect(of(0)).toBeUndefined();
  expect(of(0, 20, -10)).toMatchObject({ verdict: "good" });
  expect(of(0, 900, -600)).toMatchObject({
    verdict: "wrong",
    found: expect.stringMatching(/nats-1 is at least 1\.5 s ahead of nats-2/),
    todo: expect.stringContaining("NTP"),
  });
});

it("says where two workers of one machine chose the same resource, and not where they share the machine", () => {
  const found = (one: Record<string, unknown>, two: object) =>
    engineFindings({ ...well, workers: [worker(one), worker({ workerId: "worker-2", ...two })] }).filter(
      ({ code }) => code === "resource_shared",
    );
  const gpu = { host: "box.lan", resourceId: "gpu-0" };
  expect(found(gpu, gpu)).toMatchObject([
    { verdict: "note", what: "resource gpu-0", found: expect.stringContaining("worker-1, worker-2") },
  ]);
  expect(found(gpu, { host: "other.lan", resourceId: "gpu-0" })).toEqual([]);
  expect(found(gpu, { host: "box.lan", resourceId: "gpu-1" })).toEqual([]);
  const machine = { host: "box.lan", resourceId: "box-lan" };
  expect(found(machine, machine)).toEqual([]);
});
